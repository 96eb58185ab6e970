package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

var (
	callers   = flag.Int("callers", 1000, "how many nodes TestThousandCallers connects")
	quietTime = flag.Duration("callers.quiet", 0, "how long it leaves them alone before it looks at memory")
)

const (
	// beams is the number of callers that are Erlang nodes.
	beams = 24

	// arriving is the number of callers that connect at the same time.
	arriving = 256

	// few is the number of callers that call before all do, for comparison.
	few = beams + 10
)

// TestThousandCallers connects many nodes, which then all call at the same time. It measures the
// figures in docs/figures.md:
//
//	go test -v -run TestThousandCallers ./rel/flake
//	go test -v -run TestThousandCallers ./rel/flake -callers=10000 -callers.quiet=30s
func TestThousandCallers(t *testing.T) {
	calls := max(1, 100_000 / *callers)
	n := startPlain(t, "")
	t.Setenv("ERL_EPMD_PORT", n.port)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // because so many processes start
	defer cancel()
	alone := n.state(t)
	conns := make([]*client.Conn, *callers)
	each := func(conns []*client.Conn, atOnce int, do func(i int) error) time.Duration {
		var all sync.WaitGroup
		start := time.Now()
		places := make(chan struct{}, atOnce)
		for i := range conns {
			places <- struct{}{}
			all.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
				<-places
			})
		}
		all.Wait()
		return time.Since(start)
	}
	// Erlang nodes start calling when told to, through their rex.
	var running []*process
	for i := range beams {
		flags := []string{"-name", beam(i), "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1"}
		running = append(running, spawnErl(t, n.port, flags, "silent"))
	}
	for _, p := range running {
		p.await("READY")
	}
	each(conns[:beams], beams, func(i int) (err error) {
		conns[i], err = client.Dialer{Cookie: cookie}.Dial(ctx, beam(i))
		return err
	})
	dial := func(i int) (err error) {
		conns[i], err = n.connect(ctx)
		return err
	}
	each(conns[beams:few], few, func(i int) error { return dial(beams + i) })
	if t.Failed() {
		return
	}
	ids := make([][]flake.ID, *callers)
	call := func(i, calls int) error {
		for range calls {
			reply, err := conns[i].Call(ctx, "flake", etf.Atom("get"))
			if err != nil {
				return err
			}
			id, ok := reply.(etf.Tuple)[1].([]byte)
			if !ok {
				return fmt.Errorf("answered %s", etf.Format(nil, reply))
			}
			ids[i] = append(ids[i], flake.ID(id))
		}
		return nil
	}
	// cost returns the node's CPU time per call.
	cost := func(calls int, do func()) time.Duration {
		before := n.cpu(t)
		do()
		return (n.cpu(t) - before) / time.Duration(calls)
	}
	ofFew := cost(10*2000, func() {
		each(conns[beams:few], few, func(i int) error { return call(beams+i, 2000) })
	})
	connected := each(conns[few:], arriving, func(i int) error { return dial(few + i) })
	if t.Failed() {
		return
	}
	report := func(when string) {
		time.Sleep(*quietTime) // because idle connections are what is measured
		now := n.state(t)
		t.Logf("%s: %.2f descriptors, %.1f kB each", when, float64(now.files-alone.files)/float64(*callers),
			float64(now.memory-alone.memory)/float64(*callers))
	}
	report("connected")
	first := each(conns[beams:], *callers, func(i int) error { return call(beams+i, 1) })
	report("after a call of each")
	var called time.Duration
	ofAll := cost(*callers*calls, func() {
		called = each(conns, *callers, func(i int) error {
			if i < beams {
				reply, err := conns[i].Apply(ctx, "caller", "ids", []etf.Term{etf.Atom(nodeName), int64(calls)})
				list, _ := reply.(etf.List)
				for _, id := range list {
					ids[i] = append(ids[i], flake.ID(id.([]byte)))
				}
				if err == nil && len(list) != calls {
					err = fmt.Errorf("%s says %s", beam(i), etf.Format(nil, reply))
				}
				return err
			}
			return call(i, calls)
		})
	})
	report("after all calls")
	t.Logf("%d nodes, %d of them Erlang's, connected in %v; the first call of each in %v; RSS %d kB alone, "+
		"%d kB at most; %.0f calls/s; CPU a call %v, of 10 nodes %v",
		*callers, beams, connected.Round(time.Millisecond), first.Round(time.Millisecond), alone.memory,
		memory(t, n, "VmHWM"),
		float64(*callers*calls)/called.Seconds(), ofAll, ofFew)
	seen := make(map[flake.ID]bool)
	for i := range ids {
		for _, id := range ids[i] {
			if seen[id] {
				t.Fatalf("%v was returned twice", id)
			}
			seen[id] = true
		}
		conns[i].Close()
	}
}

func (n *flakeNode) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat := readFile(t, fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	_, rest, _ := strings.Cut(stat, ") ") // the name may contain anything
	fields := strings.Fields(rest)
	const user, system, perSecond = 11, 12, 100
	ticks := 0
	for _, field := range []int{user, system} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}

func beam(i int) string { return fmt.Sprintf("beam%d@127.0.0.1", i) }
