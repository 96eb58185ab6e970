package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
)

// peerConfig writes the file of a node that shares its worker id and asks peers every
// second. A user has a folder in its own.
func peerConfig(t *testing.T, name string, user int, worker flake.Worker, peers string) string {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Mkdir(state, 0o700), os.Chown(state, user, user))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sys.toml")
	text := fmt.Sprintf(`
[node]
name = "%s@127.0.0.1"
cookie = %q
[flake]
timestamp_path = %q
worker_id = %q
peers = [%s]
peers_interval = 1
[http]
listen = "127.0.0.1:0"
`, name, cookie, filepath.Join(state, "timestamp"), worker, peers)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// asNobody runs the command as a user whose claims other users' nodes do no more than
// warn of: as they would not see one on another machine.
func asNobody(t *testing.T, port, config string) *process {
	t.Helper()
	return spawn(t, port, "setpriv", fmt.Sprintf("--reuid=%d", nobody), fmt.Sprintf("--regid=%[1]d", nobody), "--clear-groups",
		"env", "PATH=", command, "-noinput", "-config", config)
}

const nobody = 65534 // a user

const bothPeers = `"first@127.0.0.1", "second@127.0.0.1"`

// Of two nodes with one worker the second is refused, and is told who the first is. If
// it could not ask at its start, it stops later, and the first goes on. If it asks
// nobody, the first stops.
func TestPeers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user, too")
	}
	port, worker := freePort(t), flake.RandomWorker()
	startDaemon(t, port)
	first := asNobody(t, port, peerConfig(t, "first", nobody, worker, bothPeers))
	url := first.await("  HTTP ")

	file := peerConfig(t, "second", os.Getuid(), worker, bothPeers)
	second := spawn(t, port, command, "-noinput", "-config", file)
	want := fmt.Sprintf("flake: worker_taken: generator flake of first@127.0.0.1 has worker_id %s, as generator flake here", worker)
	if status := second.wait(); status != exitFailure || !strings.Contains(second.output(), want) {
		t.Errorf("exit status %d, want %d and %q", status, exitFailure, want)
	}

	first.signal(syscall.SIGSTOP)
	second = spawn(t, port, command, "-noinput", "-config", file)
	otherURL := second.await("  HTTP ")
	first.signal(syscall.SIGCONT)
	awaitReady(t, otherURL, http.StatusServiceUnavailable, `"reason":"worker_taken"`)
	if !strings.Contains(second.output(), "whether it has our worker is not known") {
		t.Error("not a word of a peer that did not answer")
	}
	awaitReady(t, url, http.StatusOK, "")
	if err := second.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.wait()

	first.signal(syscall.SIGSTOP)
	second = spawn(t, port, command, "-noinput", "-config", peerConfig(t, "second", os.Getuid(), worker, ""))
	otherURL = second.await("  HTTP ")
	first.signal(syscall.SIGCONT)
	awaitReady(t, url, http.StatusServiceUnavailable, `"reason":"worker_taken"`)
	awaitReady(t, otherURL, http.StatusOK, "")
	for _, want := range []string{`flake_ready{generator="flake"} 0`, `flake_peer_answers{peer="second@127.0.0.1"} 1`} {
		await(t, want, func() bool {
			_, metrics := fetch(t, http.DefaultClient, url+"metrics", "")
			return strings.Contains(metrics, want+"\n")
		})
	}
}

func awaitReady(t *testing.T, url string, status int, part string) {
	t.Helper()
	await(t, fmt.Sprintf("readyz %d %s", status, part), func() bool {
		got, body := fetch(t, http.DefaultClient, url+"readyz", "")
		return got == status && strings.Contains(body, part)
	})
}

// other is a node that answers info in a way of its own, as it does all else.
type other struct {
	genserver.Plain
	info atomic.Pointer[func() etf.Term]
}

func (o *other) HandleCall(c genserver.Call) {
	b, err := etf.Append(c.Begin(), (*o.info.Load())(), c.Caps())
	if err != nil {
		panic(err)
	}
	c.Reply(b)
}

// says has the node tell of its fleet, with a clock that is ahead.
func (o *other) says(ahead time.Duration, workers ...etf.Term) {
	o.answers(func() etf.Term {
		now := time.Now().Add(ahead).UnixMilli()
		return etf.List{
			etf.Tuple{etf.Atom("time"), now}, etf.Tuple{etf.Atom("since"), int64(1)}, etf.Tuple{etf.Atom("workers"), etf.List(workers)},
		}
	})
}

func (o *other) answers(info func() etf.Term) { o.info.Store(&info) }

// start starts it, with the EPMD at a port.
func (o *other) start(t *testing.T, port string) *node.Node {
	t.Helper()
	at, _ := strconv.Atoi(port)
	log := slog.New(slog.DiscardHandler)
	n, err := node.Start(t.Context(), node.Options{Name: "other@127.0.0.1", Cookie: cookie, Keeper: &epmd.Keeper{Port: uint16(at), Log: log}, Log: log,
		Supervisors: []node.Supervisor{{Name: "flake_sup", Module: "flake_sup", Servers: []node.Server{{Name: "flake", Module: "flake_server", Handler: o}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

// With a clock that differs from a peer's a node does not start, and while it runs it
// stops until the clocks agree. A peer that does not know info is said to be one.
func TestPeerClock(t *testing.T) {
	o := new(other)
	o.says(time.Hour)
	var n *node.Node
	t.Setenv("PATH", "") // where no epmd is found
	s, _ := startHere(t, func(c *config.Config) {
		n = o.start(t, os.Getenv("ERL_EPMD_PORT"))
		c.HTTP.Listen = "127.0.0.1:0"
		c.Flake.Peers, c.Flake.PeersInterval = []string{"other@127.0.0.1", c.Node.Name}, 20*time.Millisecond
		_, err := start(t.Context(), *c, io.Discard, &nodeLog{Logger: slog.New(slog.DiscardHandler)}, nil)
		if !errors.Is(err, idserver.ErrClockDiffers) || !strings.Contains(err.Error(), "behind that of other@127.0.0.1") {
			t.Errorf("start with a clock that is an hour behind: %v", err)
		}
		o.says(0)
	})
	defer s.stop()
	ready := func() error { return s.generators.list[0].server.IDs.Ready() }
	if err := ready(); err != nil {
		t.Error(err)
	}
	o.says(-61 * time.Minute)
	await(t, "stopped", func() bool { return errors.Is(ready(), idserver.ErrClockDiffers) })
	if _, err := s.generators.list[0].server.Get(t.Context()); !errors.Is(err, idserver.ErrClockDiffers) {
		t.Errorf("an id: %v", err)
	}
	_, metrics := fetch(t, http.DefaultClient, s.http.url+"metrics", "")
	if !strings.Contains(metrics, `flake_peer_clock_offset_seconds{peer="other@127.0.0.1"} -36`) {
		t.Errorf("no clock of the peer in\n%s", metrics)
	}
	o.says(0)
	await(t, "ids again", func() bool { return ready() == nil })
	o.answers(func() etf.Term { return etf.Atom("ok") })
	await(t, "not comparable", func() bool {
		asked := s.fleet.asked()
		return len(asked) == 1 && asked[0].Answered && !asked[0].Compared
	})
	if err := ready(); err != nil {
		t.Error(err)
	}
	n.Stop()
	await(t, "silent", func() bool { return !s.fleet.asked()[0].Answered })
	if err := ready(); err != nil {
		t.Error(err)
	}
}

// Peers are found as any node that ours dials: at its own port without EPMD, and on its
// own host by the EPMD that it has. So is ours by flake get.
func TestPeersFound(t *testing.T) {
	for name, peer := range map[string]func(*config.Node) node.Options{
		"without EPMD": func(c *config.Node) node.Options {
			c.EPMD, c.Listen = "off", net.JoinHostPort("127.0.0.1", freePort(t))
			return node.Options{Name: "other@127.0.0.2", Listen: net.JoinHostPort("127.0.0.2", c.FixedPort()), EPMD: epmd.Off}
		},
		"with an EPMD of its own": func(c *config.Node) node.Options {
			port := freePort(t)
			c.EPMD = "127.0.0.1:" + port
			n, _ := strconv.Atoi(port)
			return node.Options{Name: "other@127.0.0.1", Keeper: &epmd.Keeper{Port: uint16(n)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n *node.Node
			var own config.Node
			t.Setenv("PATH", "") // where no epmd is found
			s, _ := startHere(t, func(c *config.Config) {
				o := peer(&c.Node)
				own = c.Node
				o.Cookie, o.Log = cookie, slog.New(slog.DiscardHandler)
				var err error
				if n, err = node.Start(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				c.Flake.Peers = []string{o.Name}
			})
			defer n.Stop()
			defer s.stop()
			if asked := s.fleet.round; len(asked) != 1 || !errors.Is(asked[0].err, client.ErrNoProcess) { // it has connected
				t.Errorf("%+v", asked)
			}
			dialer, err := dialerOf(own)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := dialer.Dial(t.Context(), own.Name)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

// The clock that is right is that in the middle, so not all nodes stop.
func TestClockFault(t *testing.T) {
	at := func(seconds ...int) (sights []sight) {
		for i, s := range seconds {
			sights = append(sights, sight{peer: fmt.Sprint(i), offset: time.Duration(s) * time.Second,
				fleet: idserver.Fleet{Since: time.UnixMilli(int64(10 * (i + 1)))}})
		}
		return sights
	}
	silent := at(60)
	silent[0].err = io.EOF
	doubtful := at(20)
	doubtful[0].doubt = 11 * time.Second
	for name, tt := range map[string]struct {
		since  int64 // ours
		sights []sight
		off    bool
	}{
		"nobody":                               {0, nil, false},
		"as far as may be":                     {0, at(10), false},
		"at the start, against one":            {0, at(11), true},
		"at the start, behind":                 {0, at(-11), true},
		"began first":                          {5, at(60), false},
		"began later":                          {15, at(60), true},
		"one of three is off":                  {0, at(60, 0), false},
		"ours of three is off":                 {5, at(60, 61), true},
		"each of three is off, in the middle":  {0, at(60, -60), false},
		"each of three is off, at the end":     {5, at(60, 120), true},
		"two and two, and we began first":      {5, at(0, 60, 60), false},
		"two and two, and one of theirs began": {25, at(60, 60, 0), true},
		"silent":                               {0, silent, false},
		"a round trip that took long":          {0, doubtful, false},
	} {
		f := &fleet{name: "own"}
		f.since.Store(tt.since)
		if err := f.clockFault(tt.sights); (err != nil) != tt.off {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever looks at two nodes finds the same one to have begun first.
func TestBegun(t *testing.T) {
	all := []begun{{1, "b"}, {2, "a"}, {2, "b"}, {0, "a"}, {0, "b"}}
	for i, a := range all {
		for j, b := range all {
			if got := a.compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%v, %v: %d", a, b, got)
			}
		}
	}
}

// Peers are asked with the new cookie, and with the previous one if they have only that.
func TestPeerCookies(t *testing.T) {
	t.Setenv("PATH", "") // where no epmd is found
	s, _ := startHere(t)
	defer s.stop()
	for _, step := range []struct {
		current, previous string
		ok                bool
	}{{cookie, "", true}, {"new", "", false}, {"new", cookie, true}} {
		s.fleet.setCookies(step.current, step.previous)
		if sight := s.fleet.askOne(t.Context(), nodeName); (sight.err == nil) != step.ok {
			t.Errorf("%s and %q: %v", step.current, step.previous, sight.err)
		}
	}
}
