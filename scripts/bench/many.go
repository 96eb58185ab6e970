package main

import (
	"context"
	"fmt"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
)

// A call for leased ids, and how many they are.
const (
	leaseOf = 1 << 20
	listOf  = 1000
)

// many measures calls for many ids at a time, of one caller on one connection.
func many(w *world, p plan) ([]row, error) {
	s := w.flake()
	if _, err := w.start(s); err != nil {
		return nil, err
	}
	defer s.stop()
	nodes, err := w.callers(1)
	defer func() {
		for _, c := range nodes {
			c.stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	var erlang, golang, lists, singles, packed []float64
	for range p.rounds {
		for _, m := range []struct {
			rates   *[]float64
			request string
			ids     float64
		}{
			{&erlang, fmt.Sprintf("{lease,%d}", leaseOf), leaseOf},
			{&lists, fmt.Sprintf("{get_many,%d}", listOf), listOf},
			{&packed, fmt.Sprintf("{get_binary,%d}", listOf), listOf},
			{&singles, "get", 1},
		} {
			l, err := call(s, nodes, 1, m.request, p.erlang)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.request, err)
			}
			*m.rates = append(*m.rates, l.rate*m.ids)
		}
		rate, err := leaseRate(w.ctx, s, p.erlang)
		if err != nil {
			return nil, fmt.Errorf("lease from Go: %w", err)
		}
		golang = append(golang, rate)
	}
	const section = "many ids a call"
	most := make([]float64, p.rounds)
	for i := range most {
		most[i] = ceiling
	}
	return []row{
		compare(section, fmt.Sprintf("{lease,%d} from Erlang", leaseOf), "ids/s", "the format's ceiling", most, erlang).aim(atLeast(0.99)),
		compare(section, fmt.Sprintf("{lease,%d} from Go", leaseOf), "ids/s", "the format's ceiling", most, golang).aim(atLeast(0.99)),
		compare(section, fmt.Sprintf("{get_many,%d}", listOf), "ids/s", "as many gets", singles, lists),
		compare(section, fmt.Sprintf("{get_binary,%d}", listOf), "ids/s", "as many gets", singles, packed),
	}, nil
}

// leaseRate is how many ids a second package client leases.
func leaseRate(ctx context.Context, s *server, d time.Duration) (float64, error) {
	node := client.NewNode(s.node, client.Dialer{Cookie: cookie, Addr: s.addr})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	if _, err := ids.Get(ctx); err != nil { // connected
		return 0, err
	}
	n, start := 0, time.Now()
	for time.Since(start) < d {
		if _, err := ids.Lease(ctx, leaseOf); err != nil {
			return 0, err
		}
		n += leaseOf
	}
	return float64(n) / time.Since(start).Seconds(), nil
}
