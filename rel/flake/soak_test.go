package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/internal/certstest"
	"github.com/flake-go/flake/node/handshake"
)

var soakTime = flag.Duration("soak.time", 2*time.Minute, "how long TestSoak runs")

// TestSoak runs two nodes through an operator's day in fast motion. At the end, the node that was never
// stopped uses no more resources than early in the test, and no id has repeated.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := newSoak(t)
	ctx, cancel := context.WithTimeout(t.Context(), *soakTime)
	var running sync.WaitGroup
	events, began := 0, time.Now()
	newcomers := newcomers{how: "newcomers", t: t, until: ctx, dial: func(ctx context.Context) (*client.Conn, error) {
		return client.Dialer{Cookie: cookie, Addr: s.steady.addr}.Dial(ctx, nodeName)
	}}
	defer func() { // also if it ends early
		cancel()
		running.Wait()
		t.Logf("%d events; %v; calls refused for a time: %v", events, &newcomers, s.refused)
		s.judge(time.Since(began))
		noRunTwice(t, s.runs)
	}()
	for _, name := range []string{nodeName, mortal} {
		addr := map[string]string{nodeName: s.steady.addr, mortal: s.mortalAddr}[name]
		for range 4 {
			node := client.NewNode(name, client.Dialer{Cookie: cookie, Addr: addr})
			t.Cleanup(func() { node.Close() })
			running.Go(func() { s.take(ctx, client.NewIDs[flake.ID](node, "flake"), name == mortal) })
		}
	}
	running.Go(func() { s.overHTTP(ctx) })
	running.Go(func() { s.guess(ctx) })
	running.Go(newcomers.come)
	running.Go(func() { s.sample(ctx) })
	for ; ctx.Err() == nil && !t.Failed(); events++ {
		event := day[events%len(day)]
		event.happen(s)
		s.awaitRecovery(event.name)
	}
}

// day is what happens, in this order, repeatedly.
var day = []struct {
	name   string
	happen func(s *soak)
}{
	{"an Erlang node connects, calls and leaves", (*soak).visit},
	{"EPMD is restarted", (*soak).restartEPMD},
	{"the clock is set ahead, and back", func(s *soak) { s.step(2 * time.Second); s.step(0) }},
	{"a node is killed", func(s *soak) { s.restart(syscall.SIGKILL) }},
	{"the disk accepts no writes for a time", (*soak).fullDisk},
	{"the clock is far ahead for a time", func(s *soak) { s.step(time.Hour); s.step(0) }},
	{"a node is stopped", func(s *soak) { s.restart(syscall.SIGTERM) }},
	{"a certificate is renewed", (*soak).renew},
	{"the clock is set back, and ahead", func(s *soak) { s.step(-2 * time.Second); s.step(0) }},
	{"the configuration is read again", (*soak).reload},
	{"a node is interrupted", func(s *soak) { s.restart(syscall.SIGINT) }},
}

const mortal = "mortal@127.0.0.1"

type soak struct {
	t          *testing.T
	epmd       realEPMD
	ca         *certstest.CA
	web        *http.Client
	url        string
	steady     *flakeNode // never stopped
	folder     string     // of its configuration and mark
	clock      string     // the file that says how far its clock is ahead
	mortal     *process
	mortalAddr string
	start      func() *process

	mu      sync.Mutex
	runs    []flake.Run
	refused map[string]int
	samples []load
}

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, ca: certstest.NewCA(t, "ca"), clock: filepath.Join(t.TempDir(), "clock"),
		refused: make(map[string]int)}
	port := freePort(t)
	s.epmd = startEPMD(t, port)
	epmd := fmt.Sprintf("epmd = %q", "127.0.0.1:"+port) // so that neither node serves its own EPMD
	cert, key := s.ca.Issue("http", "127.0.0.1")
	web := "127.0.0.1:" + freePort(t)
	s.url = "https://" + web
	transport := &http.Transport{TLSClientConfig: s.ca.Client("reader", "127.0.0.1")}
	t.Cleanup(transport.CloseIdleConnections)
	s.web = &http.Client{Transport: transport, Timeout: patience / 4}
	command, err := withClock()
	need(t, err)
	command = script(t, "CLOCK_AHEAD=%q exec %q \"$@\"", s.clock, command)
	s.steady = startCommand(t, command, port,
		fmt.Sprintf("%s\n[http]\nlisten = %q\n[http.tls]\ncert = %q\nkey = %q\n", epmd, web, cert, key))
	s.folder = filepath.Dir(s.steady.cmd.Args[slices.Index(s.steady.cmd.Args, "-config")+1])
	s.mortalAddr = "127.0.0.1:" + freePort(t)
	config := configFile(t, fmt.Sprintf("%s\nlisten = %q", epmd, s.mortalAddr))
	s.start = func() *process { return spawn(t, port, command, "-noinput", "-name", mortal, "-config", config) }
	s.mortal = s.start()
	return s
}

// withClock builds the command with a clock that is ahead by the number of ns in the file that CLOCK_AHEAD names. The
// command also writes its number of goroutines to another file, whose name is that of the file followed by the
// command's pid. The source is always the same, so that Go compiles it only once.
var withClock = sync.OnceValues(func() (string, error) {
	const source, wall, added = "../../flake/internal/tick/clock.go", "time.Now().UnixNano()", "added.go"
	text, err := os.ReadFile(source)
	if err != nil || strings.Count(string(text), wall) != 1 {
		return "", fmt.Errorf("%s should read %s once: %w", source, wall, err)
	}
	dir, err := os.MkdirTemp(built, "clock")
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	overlay := fmt.Sprintf(`{"Replace": {%q: %q, %q: %q}}`, absolute, filepath.Join(dir, "clock.go"),
		filepath.Join(filepath.Dir(absolute), added), filepath.Join(dir, added))
	for name, text := range map[string]string{
		"clock.go": strings.Replace(string(text), wall, wall+"+ahead.Load()", 1), added: ahead, "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	command := filepath.Join(built, "flake-soak")
	return command, compile("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", command, ".")
})

const ahead = `package tick
import ("fmt"; "os"; "runtime"; "sync/atomic"; "time")
var ahead atomic.Int64
func init() {
	file := os.Getenv("CLOCK_AHEAD")
	if file == "" {
		return
	}
	go func() {
		own, before := fmt.Sprint(file, os.Getpid()), 0
		for ; ; time.Sleep(10 * time.Millisecond) {
			var ns int64
			if text, err := os.ReadFile(file); err == nil {
				fmt.Sscan(string(text), &ns)
				ahead.Store(ns)
			}
			if n := runtime.NumGoroutine(); n != before {
				os.WriteFile(own+"-", fmt.Append(nil, n), 0o600)
				os.Rename(own+"-", own)
				before = n
			}
		}
	}()
}
`

// take takes ids from a node until ctx is done. If mortal is set, the node may be down at times.
func (s *soak) take(ctx context.Context, ids *client.IDs[flake.ID], mortal bool) {
	var last flake.ID
	for ctx.Err() == nil {
		n := 1
		if rand.IntN(10) == 0 {
			n = 1 + rand.IntN(1000)
		}
		runs, err := ids.Lease(ctx, n)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, flake.ErrTimestampNotSaved):
			s.refuse("not saved")
		case errors.Is(err, flake.ErrClockBackwards):
			s.refuse("clock behind")
		case err != nil && mortal:
			s.refuse("away")
		case err != nil:
			s.t.Errorf("a call failed: %v", err)
			return
		}
		for _, run := range runs {
			if run.First.Compare(last) <= 0 {
				s.t.Errorf("%v was returned after %v", run.First, last)
			}
			last = run.At(run.Count - 1)
			s.mu.Lock()
			s.runs = append(s.runs, flake.Run(run))
			s.mu.Unlock()
		}
		time.Sleep(10 * time.Millisecond) // a caller at a steady rate
	}
}

func (s *soak) refuse(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[why]++
}

func (s *soak) overHTTP(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) { // at a steady rate
		for _, path := range []string{"/v1/ids?n=10", "/metrics", "/", "/healthz"} {
			answer, err := s.web.Get(s.url + path)
			if err != nil {
				s.t.Errorf("%s: %v", path, err)
				return
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
}

// guess tries wrong cookies.
func (s *soak) guess(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) { // at a steady rate
		c, err := net.Dial("tcp", s.steady.addr)
		if err != nil {
			s.t.Error(err)
			return
		}
		if _, err := handshake.Start(c, nodeName,
			handshake.Options{Node: "guess@127.0.0.1", Creation: 1, Cookie: "guess"}); err == nil {
			s.t.Error("a wrong cookie was accepted")
		}
		c.Close()
	}
}

// awaitRecovery waits until the steady node hands out ids and is registered.
func (s *soak) awaitRecovery(after string) {
	s.t.Helper()
	await(s.t, "everything works after: "+after, func() bool {
		answer, err := s.web.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	awaitNode(s.t, s.epmd.port, "flake")
	awaitNode(s.t, s.epmd.port, "mortal")
}

func (s *soak) visit() {
	s.steady.erl([]string{"-name", "visitor@127.0.0.1"}, "get", "functions")
}

func (s *soak) restartEPMD() {
	s.epmd.kill()
	s.epmd = startEPMD(s.t, s.epmd.port)
}

// step sets the clock of both nodes, and waits until they have used it for some time.
func (s *soak) step(ahead time.Duration) {
	if err := os.WriteFile(s.clock, fmt.Append(nil, ahead.Nanoseconds()), 0o600); err != nil {
		s.t.Error(err)
	}
	s.pause()
}

// pause waits longer than a mark can be ahead of the clock.
func (s *soak) pause() { time.Sleep(5 * time.Second) }

func (s *soak) restart(signal syscall.Signal) {
	s.mortal.signal(signal)
	s.mortal.wait()
	s.mortal = s.start()
}

// fullDisk blocks saves: it puts a directory that cannot be removed where the next file of marks would be written.
func (s *soak) fullDisk() {
	block := filepath.Join(s.folder, "timestamp.new")
	for {
		os.Remove(block)
		if os.MkdirAll(filepath.Join(block, "full"), 0o700) == nil {
			break
		}
	}
	s.pause()
	if err := os.RemoveAll(block); err != nil {
		s.t.Error(err)
	}
}

func (s *soak) renew() {
	before := shown(s.t, strings.TrimPrefix(s.url, "https://"), s.ca)
	s.ca.Issue("http", "127.0.0.1")
	await(s.t, "the new certificate is shown", func() bool {
		return !shown(s.t, strings.TrimPrefix(s.url, "https://"), s.ca).Equal(before)
	})
}

func (s *soak) reload() {
	const done = "the configuration was reloaded"
	before := strings.Count(s.steady.output(), done)
	s.steady.signal(syscall.SIGHUP)
	await(s.t, done, func() bool { return strings.Count(s.steady.output(), done) > before })
}

// load is what the steady node uses: memory in kB, descriptors, threads, goroutines.
type load [4]float64

var loads = [len(load{})]struct {
	what  string
	spare float64
}{{"memory, kB", 8 << 10}, {"descriptors", 8}, {"threads", 8}, {"goroutines", 16}}

func (s *soak) sample(ctx context.Context) {
	every := max(*soakTime/600, 100*time.Millisecond)
	for ; ctx.Err() == nil; time.Sleep(every) {
		now := s.steady.state(s.t)
		text, err := os.ReadFile(fmt.Sprint(s.clock, s.steady.cmd.Process.Pid))
		goroutines, wrong := strconv.Atoi(string(text))
		if err := errors.Join(err, wrong); err != nil {
			s.t.Error(err)
			return
		}
		s.samples = append(s.samples,
			load{float64(now.memory), float64(now.files), float64(now.threads), float64(goroutines)})
	}
}

// judge fails the test if the use of a resource grows from the second quarter of the run to the
// last by more than the resource's spare. It plots all samples.
func (s *soak) judge(took time.Duration) {
	quarter := len(s.samples) / 4
	if quarter == 0 {
		s.t.Fatal("no samples")
	}
	for i, u := range loads {
		all := make([]float64, len(s.samples))
		for j, sample := range s.samples {
			all[j] = sample[i]
		}
		before, after := median(all[quarter:2*quarter]), median(all[len(all)-quarter:])
		s.t.Logf("%-11s %s %.0f to %.0f; %+.1f an hour", u.what, plot(all), slices.Min(all), slices.Max(all),
			slope(all[quarter:])*float64(len(all))/took.Hours())
		if after > before+u.spare {
			s.t.Errorf("%s grew from %.0f to %.0f", u.what, before, after)
		}
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// slope returns the slope of the values, by least squares.
func slope(all []float64) float64 {
	var x, y, xx, xy float64
	for i, v := range all {
		x, y, xx, xy = x+float64(i), y+v, xx+float64(i*i), xy+float64(i)*v
	}
	n := float64(len(all))
	return (n*xy - x*y) / (n*xx - x*x)
}

// plot draws at most 60 bars.
func plot(all []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	least, most := slices.Min(all), slices.Max(all)
	var b strings.Builder
	for part := range slices.Chunk(all, (len(all)+59)/60) {
		b.WriteRune(bars[int((median(part)-least)/max(most-least, 1)*float64(len(bars)-1))])
	}
	return b.String()
}
