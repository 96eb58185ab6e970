package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
)

// A goClient is a way that package client gets ids.
type goClient struct {
	what    string
	callers int
	echo    bool // beside the echo
	target  target
	// take returns the function that a caller takes ids with, and how many it takes.
	take func(*client.IDs[flake.ID], *client.Leased[flake.ID]) func(context.Context) (int, error)
}

var goClients = []goClient{
	{"Next", 1, true, target{}, one},
	{"Next, 64 callers", 64, true, atLeast(0.85), one},
	{"Next, 1000 callers", 1000, true, target{}, one},
	{"Lease of 65,536, 4 callers", 4, false, oursAtLeast(0.99 * ceiling), lease(1 << 16)},
	{"Leased.Next", 1, false, target{}, next},
	{"Leased.Next, 8 callers", 8, false, target{}, next},
}

func one(ids *client.IDs[flake.ID], _ *client.Leased[flake.ID]) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		_, err := ids.Next(ctx)
		return 1, err
	}
}

func lease(n int) func(*client.IDs[flake.ID], *client.Leased[flake.ID]) func(context.Context) (int, error) {
	return func(ids *client.IDs[flake.ID], _ *client.Leased[flake.ID]) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			_, err := ids.Lease(ctx, n)
			return n, err
		}
	}
}

func next(_ *client.IDs[flake.ID], leased *client.Leased[flake.ID]) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		const many = 1000 // so that it is not the counting that is measured
		for range many {
			if _, err := leased.Next(ctx); err != nil {
				return 0, err
			}
		}
		return many, nil
	}
}

// goClientRates measures package client, over one connection, and as many goroutines
// that call the echo with a bare client.
func goClientRates(w *world, p plan) ([]row, error) {
	servers, stop, err := w.all()
	defer stop()
	if err != nil {
		return nil, err
	}
	s, echo := servers[ours], servers[floor]
	node := client.NewNode(s.node, client.Dialer{Cookie: cookie, Addr: s.addr})
	defer node.Close()
	ids := client.NewIDs[flake.ID](node, "flake")
	leased, err := ids.Leased(client.LeaseOptions{Size: 100_000})
	if err != nil {
		return nil, err
	}
	defer leased.Close()

	shared, err := dialBare(echo.addr, echo.node)
	if err != nil {
		return nil, err
	}
	defer shared.close()
	bare := func(context.Context) (int, error) { return 1, shared.call() }
	rates := newVersus[float64](len(goClients), 2)
	for round := range p.rounds {
		for i, c := range goClients {
			err := rates[i].add(round, func(side int) (float64, error) {
				switch {
				case side == ours:
					return c.run(w.ctx, c.take(ids, leased), p.client)
				case c.echo:
					return c.run(w.ctx, bare, p.client)
				}
				return 0, nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.what, err)
			}
		}
	}
	var rows []row
	for i, c := range goClients {
		const section, unit = "client in Go, one connection", "ids/s"
		r := compare(section, c.what, unit, "a bare echo", rates[i][theirs], rates[i][ours])
		if !c.echo {
			r = row{
				Section: section, What: c.what, Unit: unit,
				Ours: r.Ours, Low: slices.Min(rates[i][ours]), High: slices.Max(rates[i][ours]),
			}
		}
		rows = append(rows, r.aim(c.target))
	}
	return rows, nil
}

// run returns the ids a second that the callers get.
func (c goClient) run(ctx context.Context, take func(context.Context) (int, error), d time.Duration) (float64, error) {
	var (
		stop    atomic.Bool
		total   atomic.Int64
		errs    = make([]error, c.callers)
		callers sync.WaitGroup
	)
	start := time.Now()
	time.AfterFunc(d, func() { stop.Store(true) })
	for i := range c.callers {
		callers.Go(func() {
			for !stop.Load() && errs[i] == nil {
				n, err := take(ctx)
				total.Add(int64(n))
				errs[i] = err
			}
		})
	}
	callers.Wait()
	return float64(total.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}
