package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

var (
	siegeTime   = flag.Duration("attack.time", 20*time.Second, "how long TestTogether attacks")
	attackOnly  = flag.String("attack.only", "", "run only the attacks of TestTogether whose names contain this")
	attackShare = flag.Int("attack.percent", 25, "the percentage of its attackers that take part")
	attackBound = flag.Duration("attack.bound", time.Minute, "the time within which its honest calls must be answered")
)

// TestTogether attacks the command in many ways at the same time, while an Erlang node calls it
// from 32 processes and leases from four, and other nodes come and go. All calls are
// answered, and when the attackers have gone, everything is as before. To check what the node
// promises:
//
//	go test -v -run TestTogether ./rel/flake -attack.time=2m -attack.bound=2s -attack.percent=100
func TestTogether(t *testing.T) {
	address := "127.0.0.1:" + freePort(t)
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	n := startCommand(t, command, "", fmt.Sprintf("max_connections = %d\n[http]\nlisten = %q\n", mostTogether, address))
	t.Setenv("ERL_EPMD_PORT", n.port)
	served(t, n)
	before := n.state(t) // nobody is connected
	ids := t.TempDir()
	caller := spawnErl(t, n.port, []string{"-name", "caller@127.0.0.1", "+S", "1:1"},
		fmt.Sprintf("honest=%s,%d,%d", ids, siegeTime.Milliseconds()+1000, attackBound.Milliseconds()))
	caller.await("CALLING")
	resetPeak(t, n)

	ctx, cancel := context.WithTimeout(t.Context(), *siegeTime)
	defer cancel()
	s := newSiege(ctx, t, n, "http://"+address)
	byAddress := newcomers{how: "by address", t: t, until: ctx, dial: func(ctx context.Context) (*client.Conn, error) {
		return client.Dialer{Cookie: cookie, Addr: n.addr}.Dial(ctx, nodeName)
	}}
	byEPMD := newcomers{how: "by EPMD", t: t, until: ctx, dial: func(ctx context.Context) (*client.Conn, error) {
		return client.Dialer{Cookie: cookie}.Dial(ctx, nodeName)
	}}
	var running sync.WaitGroup
	s.begin(&running)
	running.Go(byAddress.come)
	running.Go(byEPMD.come)
	running.Go(func() { askReady(t, ctx, "http://"+address) })
	newcomer := spawnErl(t, n.port, []string{"-name", "newcomer@127.0.0.1"}, "ping", "get")
	wantChecks(t, newcomer, "ping", "get")
	running.Wait()
	wantChecks(t, caller, "honest")

	grown := memory(t, n, "VmHWM") - before.memory
	_, slowest, _ := strings.Cut(caller.output(), "SLOWEST ")
	slowest, _, _ = strings.Cut(slowest, "\n")
	t.Logf("before %+v, %+d kB at most; honest calls: the slowest %s ms; newcomers %v, %v", before, grown, slowest,
		&byAddress, &byEPMD)
	if grown > mostGrown {
		t.Errorf("memory grew by %d kB, want at most %d", grown, mostGrown)
	}
	noneTwice(t, ids)
	defer func() { t.Logf("afterwards %+v", n.state(t)) }()
	await(t, "all have gone", func() bool { return n.state(t).files <= before.files+spareFiles })
	await(t, "nobody else takes ids", func() bool { return alone(t, n) })
	n.erl([]string{"-name", "after@127.0.0.1"}, "get", "servers", "functions", "terminate")
	await(t, "all is as it was", func() bool {
		now := n.state(t)
		return now.files <= before.files+spareFiles && now.threads <= before.threads+spareThreads &&
			now.memory <= before.memory+spareMemory
	})
}

// mostGrown is how much memory may grow, in kB, according to SECURITY.md, with mostTogether
// nodes connected.
const (
	mostTogether = 4096
	mostGrown    = (mayGrow + mayGrowPerConnection*(mostTogether-mayGrowConnections)) >> 10
)

// What the node keeps for later: descriptors that are opened once, threads, and memory in kB.
const (
	spareFiles   = 2
	spareThreads = 32
	spareMemory  = 32 << 10
)

// state counts what a node uses: open files, threads, and kB of memory.
type state struct{ files, threads, memory int }

func (n *flakeNode) state(t *testing.T) state {
	t.Helper()
	entries := func(dir string) int {
		all, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(n.cmd.Process.Pid), dir))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	return state{entries("fd"), entries("task"), memory(t, n, "VmRSS")}
}

// alone takes ids, and reports whether they are consecutive. At first they may not be, because
// the node may still perform calls of peers that have gone.
func alone(t *testing.T, n *flakeNode) bool {
	t.Helper()
	const calls = 100
	node := client.NewNode(nodeName, client.Dialer{Addr: n.addr, Cookie: cookie})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	var last flake.ID
	for i := range calls {
		id, err := ids.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && id != last.Plus(1) && id.Sequence() != 0 {
			return false
		}
		last = id
	}
	return true
}

// noneTwice fails the test if an id is in two of the runs in a folder's files.
func noneTwice(t *testing.T, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Errorf("%d files of ids, %v", len(files), err)
	}
	var runs []flake.Run
	for _, file := range files {
		runs = append(runs, readRuns(t, filepath.Join(folder, file.Name()))...)
	}
	noRunTwice(t, runs)
}

func noRunTwice(t *testing.T, runs []flake.Run) {
	t.Helper()
	total := 0
	slices.SortFunc(runs, func(a, b flake.Run) int { return a.First.Compare(b.First) })
	for i, run := range runs {
		if i > 0 && run.First.Compare(runs[i-1].At(runs[i-1].Count-1)) <= 0 {
			t.Fatalf("%v was returned twice", run.First)
		}
		total += run.Count
	}
	t.Logf("%d ids in %d answers", total, len(runs))
}

// newcomers connect, call, and leave, one after another.
type newcomers struct {
	how     string
	t       *testing.T
	until   context.Context
	dial    func(ctx context.Context) (*client.Conn, error)
	calls   int
	again   int // failed tries
	slowest time.Duration
}

func (c *newcomers) String() string {
	return fmt.Sprintf("%s %d, %d failed tries, the slowest %v", c.how, c.calls, c.again,
		c.slowest.Round(time.Millisecond))
}

func (c *newcomers) come() {
	for ; c.until.Err() == nil; time.Sleep(10 * time.Millisecond) { // at a steady rate
		start := time.Now()
		if err := c.one(); err != nil {
			c.t.Errorf("newcomer %s, after %d: %v", c.how, c.calls, err)
			return
		}
		c.calls++
		c.slowest = max(c.slowest, time.Since(start))
	}
}

// one tries until a connection is admitted and its call answered.
func (c *newcomers) one() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	for ; ; time.Sleep(10 * time.Millisecond) {
		conn, err := c.dial(ctx)
		if err == nil {
			_, err = conn.Call(ctx, "flake", etf.Atom("get"))
			conn.Close()
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		c.again++
	}
}

// askReady asks over HTTP whether the node is ready.
func askReady(t *testing.T, until context.Context, url string) {
	for ; until.Err() == nil; time.Sleep(100 * time.Millisecond) { // at a steady rate
		ctx, cancel := context.WithTimeout(context.Background(), patience/4)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			t.Error(err)
		}
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		cancel()
		if err != nil {
			t.Errorf("readyz: %v", err)
			return
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("readyz: %s", answer.Status)
			return
		}
	}
}
