package main

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

var callers = flag.Int("callers", 1000, "how many nodes TestThousandCallers connects")

// TestThousandCallers connects many nodes at once, each calling all the while.
// The figures in the README are its own:
//
//	go test -v -run TestThousandCallers ./rel/flake
func TestThousandCallers(t *testing.T) {
	const calls = 100
	n := startPlain(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	idle := memory(t, n, "VmRSS")
	conns := make([]*client.Conn, *callers)
	each := func(do func(i int) error) time.Duration {
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
	connected := each(func(i int) (err error) {
		conns[i], err = client.DialAddr(ctx, n.addr, nodeName, cookie)
		return err
	})
	if t.Failed() {
		return
	}
	at := memory(t, n, "VmRSS")
	ids := make([][]flake.ID, *callers)
	called := each(func(i int) error {
		for range calls {
			reply, err := conns[i].Call(ctx, "flake", etf.Atom("get"))
			if err != nil {
				return err
			}
			ids[i] = append(ids[i], flake.ID(reply.(etf.Tuple)[1].([]byte)))
		}
		return nil
	})
	t.Logf("%d nodes connected in %v; RSS %d kB idle, %d kB connected, %d kB at most; %.0f calls/s",
		*callers, connected.Round(time.Millisecond), idle, at, memory(t, n, "VmHWM"),
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
