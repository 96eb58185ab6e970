package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"

	"github.com/flake-go/flake/scripts/bench/lean"
)

type leanSetting struct {
	conns, inFlight int // on all connections together
	request         etf.Term
	rate            target
}

var getText = etf.Tuple{etf.Atom("get"), int64(62)}

var leanSettings = []leanSetting{
	{1, 1, etf.Atom("get"), atLeast(8)},
	{1, 64, etf.Atom("get"), atLeast(4)},
	{1, 256, etf.Atom("get"), atLeast(15)},
	{1, 4096, etf.Atom("get"), atLeast(40)},
	{8, 8, etf.Atom("get"), target{}},
	{8, 64, etf.Atom("get"), target{}},
	{8, 256, etf.Atom("get"), target{}},
	{8, 4096, etf.Atom("get"), target{}},
	{1, 64, getText, target{}},
	{1, 4096, getText, target{}},
}

// callLean has connections to s call until stop is set.
func callLean(s *server, set leanSetting, d time.Duration) (load, error) {
	conns := make([]*lean.Conn, set.conns)
	for i := range conns {
		c, err := lean.Dial(s.addr, s.node, cookie, set.request, set.inFlight/set.conns)
		if err != nil {
			return load{}, err
		}
		defer c.Close()
		conns[i] = c
	}
	before, err := usageOf(s.pid())
	if err != nil {
		return load{}, err
	}
	var (
		stop    atomic.Bool
		answers atomic.Int64
		errs    = make([]error, len(conns))
		wg      sync.WaitGroup
	)
	start := time.Now()
	time.AfterFunc(d, func() { stop.Store(true) })
	for i, c := range conns {
		wg.Go(func() {
			n, err := c.Run(func(int) bool { return !stop.Load() })
			answers.Add(int64(n))
			errs[i] = err
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	n := float64(answers.Load())
	l := load{calls: n, rate: n / elapsed.Seconds()}
	errs = append(errs, l.spent(s, before))
	return l, errors.Join(errs...)
}

// leanCalls measures the servers under the lean caller.
func (w *world) leanCalls(p plan) ([]row, error) {
	servers, stop, err := w.all()
	defer stop()
	if err != nil {
		return nil, err
	}
	loads := newVersus[load](len(leanSettings), sides)
	for round := range p.rounds {
		for i, set := range leanSettings {
			err := loads[i].add(round, func(side int) (load, error) {
				return callLean(servers[side], set, p.lean)
			})
			if err != nil {
				return nil, fmt.Errorf("%d in flight on %d: %w", set.inFlight, set.conns, err)
			}
		}
	}
	var rows []row
	for i, set := range leanSettings {
		what := fmt.Sprintf("%s, %d in flight", etf.Format(nil, set.request), set.inFlight)
		if set.conns > 1 {
			what += fmt.Sprintf(" on %d", set.conns)
		}
		add := func(unit string, t target, of func(load) float64) {
			rows = append(rows, loads[i].row("lean caller", what, unit, t, of))
		}
		add("calls/s", set.rate, func(l load) float64 { return l.rate })
		add("µs CPU", less, func(l load) float64 { return l.cpu })
		add("sleeps", less, func(l load) float64 { return l.sleeps })
	}
	return rows, nil
}
