package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

var callers = flag.Int("callers", 1000, "how many nodes TestThousandCallers connects")

// beams is how many of them are Erlang nodes.
const beams = 24

// TestThousandCallers connects many nodes at once, each calling all the while.
// The figures in docs/figures.md are its own:
//
//	go test -v -run TestThousandCallers ./rel/flake
func TestThousandCallers(t *testing.T) {
	const calls = 100
	n := startPlain(t, "")
	t.Setenv("ERL_EPMD_PORT", n.port)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	idle := memory(t, n, "VmRSS")
	conns := make([]*client.Conn, *callers)
	each := func(conns []*client.Conn, do func(i int) error) time.Duration {
		var all sync.WaitGroup
		start := time.Now()
		for i := range conns {
			all.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
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
	each(conns[:beams], func(i int) (err error) {
		conns[i], err = client.Dial(ctx, beam(i), cookie)
		return err
	})
	connected := each(conns[beams:], func(i int) (err error) {
		conns[beams+i], err = client.DialAddr(ctx, n.addr, nodeName, cookie)
		return err
	})
	if t.Failed() {
		return
	}
	at := memory(t, n, "VmRSS")
	ids := make([][]flake.ID, *callers)
	called := each(conns, func(i int) error {
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
		for range calls {
			reply, err := conns[i].Call(ctx, "flake", etf.Atom("get"))
			if err != nil {
				return err
			}
			ids[i] = append(ids[i], flake.ID(reply.(etf.Tuple)[1].([]byte)))
		}
		return nil
	})
	t.Logf("%d nodes, %d of them Erlang's, the others connected in %v; RSS %d kB idle, %d kB connected, %d kB at most; %.0f calls/s",
		*callers, beams, connected.Round(time.Millisecond), idle, at, memory(t, n, "VmHWM"),
		float64(*callers*calls)/called.Seconds())
	seen := make(map[flake.ID]bool)
	for i := range ids {
		for _, id := range ids[i] {
			if seen[id] {
				t.Fatalf("%v twice", id)
			}
			seen[id] = true
		}
		conns[i].Close()
	}
}

func beam(i int) string { return fmt.Sprintf("beam%d@127.0.0.1", i) }
