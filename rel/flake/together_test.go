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
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

var (
	siegeTime   = flag.Duration("attack.time", 20*time.Second, "for how long TestTogether attacks")
	attackBound = flag.Duration("attack.bound", time.Minute, "in what time its honest calls have to be answered")
)

// TestTogether has many attack the command in many ways at a time, while an Erlang node
// calls it from 32 processes, leases from four, and others come and go. All calls are
// answered, and when the attackers have gone all is as it was. What the node promises
// is shown by
//
//	go test -v -run TestTogether ./rel/flake -attack.time=2m -attack.bound=2s
func TestTogether(t *testing.T) {
	address := "127.0.0.1:" + freePort(t)
	command, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	n := startCommand(t, command, "", fmt.Sprintf("\n[http]\nlisten = %q\n", address))
	t.Setenv("ERL_EPMD_PORT", n.port)
	ids := t.TempDir()
	caller := spawnErl(t, n.port, []string{"-name", "caller@127.0.0.1", "+S", "1:1"},
		fmt.Sprintf("honest=%s,%d,%d", ids, siegeTime.Milliseconds()+1000, attackBound.Milliseconds()))
	caller.await("CALLING")
	served(t, n)
	before := n.state(t)
	resetPeak(t, n)

	ctx, cancel := context.WithTimeout(t.Context(), *siegeTime)
	defer cancel()
	s := newSiege(ctx, t, n, "http://"+address)
	others := newcomers{t: t, n: n, until: ctx}
	var running sync.WaitGroup
	for _, a := range together {
		conns := a.conns * s.percent / 100
		for i := range max(1, conns) {
			running.Go(func() { a.run(s, i) })
		}
	}
	running.Go(others.byAddress)
	running.Go(others.byEPMD)
	running.Go(func() { others.ask("http://" + address) })
	newcomer := spawnErl(t, n.port, []string{"-name", "newcomer@127.0.0.1"}, "ping", "get")
	wantChecks(t, newcomer, "ping", "get")
	running.Wait()
	wantChecks(t, caller, "honest")

	peak := n.state(t)
	grown := memory(t, n, "VmHWM") - before.memory
	_, slowest, _ := strings.Cut(caller.output(), "SLOWEST ")
	t.Logf("before %+v; at the end %+v, %+d kB at most; honest calls: the slowest %.5s ms; newcomers: %d, the slowest %v",
		before, peak, grown, slowest,
		others.calls.Load(), time.Duration(others.slowest.Load()).Round(time.Millisecond))
	if grown > mayGrow {
		t.Errorf("grown by %d kB, want at most %d", grown, mayGrow)
	}
	noneTwice(t, ids)
	n.erl([]string{"-name", "after@127.0.0.1"}, "get", "servers", "functions", "terminate")
	await(t, "all is as it was", func() bool {
		now := n.state(t)
		return now.files <= before.files && now.threads <= before.threads+spareThreads && now.memory <= before.memory+spareMemory
	})
	t.Logf("after it %+v", n.state(t))
}

// What the runtime keeps for the next time: threads, and memory in kB.
const (
	spareThreads = 32
	spareMemory  = 32 << 10
)

// state is what a node takes. The honest callers are connected before and, at the
// end, no more.
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

// noneTwice checks the runs in the files of a folder.
func noneTwice(t *testing.T, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var runs []flake.Run
	total := 0
	for _, file := range files {
		runs = append(runs, readRuns(t, filepath.Join(folder, file.Name()))...)
	}
	slices.SortFunc(runs, func(a, b flake.Run) int { return a.First.Compare(b.First) })
	for i, run := range runs {
		if i > 0 && run.First.Compare(runs[i-1].At(runs[i-1].Count-1)) <= 0 {
			t.Fatalf("%v twice", run.First)
		}
		total += run.Count
	}
	t.Logf("%d ids in %d answers", total, len(runs))
}

// newcomers connect, call, and go.
type newcomers struct {
	t       *testing.T
	n       *flakeNode
	until   context.Context
	calls   atomic.Int64
	slowest atomic.Int64
}

// come has one after the other connect, by the node's address or with the help of EPMD.
func (c *newcomers) come(how string, dial func(ctx context.Context) (*client.Conn, error)) {
	for ; c.until.Err() == nil; time.Sleep(10 * time.Millisecond) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), patience/4)
		conn, err := dial(ctx)
		if err == nil {
			_, err = conn.Call(ctx, "flake", etf.Atom("get"))
			conn.Close()
		}
		cancel()
		if err != nil {
			c.t.Errorf("newcomer %s, after %d calls: %v", how, c.calls.Load(), err)
			return
		}
		c.calls.Add(1)
		if took := int64(time.Since(start)); took > c.slowest.Load() {
			c.slowest.Store(took)
		}
	}
}

func (c *newcomers) byAddress() {
	c.come("by address", func(ctx context.Context) (*client.Conn, error) {
		return client.DialAddr(ctx, c.n.addr, nodeName, cookie)
	})
}

func (c *newcomers) byEPMD() {
	c.come("by EPMD", func(ctx context.Context) (*client.Conn, error) { return client.Dial(ctx, nodeName, cookie) })
}

// ask asks by HTTP how the node is.
func (c *newcomers) ask(url string) {
	for ; c.until.Err() == nil; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), patience/4)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			c.t.Error(err)
		}
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		cancel()
		if err != nil {
			c.t.Errorf("readyz: %v", err)
			return
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			c.t.Errorf("readyz: %s", answer.Status)
			return
		}
	}
}
