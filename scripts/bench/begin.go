package main

import (
	"errors"
	"sync"
	"time"
)

// birth is what is measured of a server that starts.
type birth struct {
	first time.Duration // from its spawning to the first id
	idle  float64       // memory
	used  float64       // memory after many calls
}

// begin measures both servers' starts and memory.
func begin(w *world, p plan) ([]row, error) {
	births := make(versus[birth], 2)
	for round := range p.starts {
		err := births.add(round, func(side int) (birth, error) {
			calls := 0
			if round == p.starts-1 {
				calls = p.calls
			}
			return w.birth(side, p, calls)
		})
		if err != nil {
			return nil, err
		}
	}
	last := versus[birth]{births[theirs][p.starts-1:], births[ours][p.starts-1:]}
	return []row{
		births.row("start and memory", "spawned to first id", "ms", atMost(0.1), func(b birth) float64 { return b.first.Seconds() * 1e3 }),
		births.row("start and memory", "resident, idle", "MB", atMost(0.5), func(b birth) float64 { return b.idle / 1e6 }),
		last.row("start and memory", "resident, after "+short(float64(p.calls))+" calls", "MB", atMost(0.5), func(b birth) float64 { return b.used / 1e6 }),
	}, nil
}

func (w *world) server(side int) *server {
	if side == theirs {
		return w.otp()
	}
	return w.flake()
}

// birth starts a server, lets it be idle, has it called and stops it.
func (w *world) birth(side int, p plan, calls int) (b birth, err error) {
	s := w.server(side)
	if b.first, err = w.start(s); err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	time.Sleep(p.idle)
	if b.idle, err = resident(s.pid()); err != nil || calls == 0 {
		return b, err
	}
	c, err := dialBare(s.addr, s.node)
	if err != nil {
		return b, err
	}
	defer c.close()
	const callers = 64
	errs := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			for n := i; n < calls && errs[i] == nil; n += callers {
				errs[i] = c.call()
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return b, err
	}
	b.used, err = resident(s.pid())
	return b, err
}
