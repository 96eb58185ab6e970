package main

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"runtime"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// measure measures the servers under callers of the scene's settings, with all that is
// to be beside them in turn.
func (sc scene) measure(w *world, p plan) (rows []row, err error) {
	if sc.veth {
		v, leave, err := w.overVeth()
		defer leave()
		if err != nil {
			return nil, err
		}
		w = v
	}
	servers, stop, err := w.all()
	defer stop()
	if err != nil {
		return nil, err
	}
	sets := slices.Clone(sc.settings)
	most := 0
	for i := range sets {
		s := &sets[i]
		s.nodes, s.depth, s.request = max(s.nodes, 1), max(s.depth, 1), cmp.Or(s.request, "get")
		most = max(most, s.nodes)
	}
	nodes, stop, err := w.callers(most)
	defer stop()
	if err != nil {
		return nil, err
	}
	for _, s := range servers { // so that all are connected
		if _, err := call(s, nodes, setting{processes: most, nodes: most, depth: 1, request: "get"}, p.erlang); err != nil {
			return nil, err
		}
	}
	for _, other := range sc.beside {
		stop, err := other.start(w)
		if err == nil {
			var more []row
			more, err = measureScene(sc.name+other.name, servers, nodes, sets, p)
			rows = append(rows, more...)
		}
		stop()
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func measureScene(section string, servers [sides]*server, nodes []*callers, sets []setting, p plan) (rows []row, err error) {
	for i, s := range sets {
		if s.half {
			if sets[i].every, err = halfOf(servers[theirs], nodes, s, p); err != nil {
				return nil, err
			}
		}
	}
	loads := newVersus[load](len(sets), sides)
	for round := range p.rounds {
		for i, s := range sets {
			d := p.erlang
			if s.half {
				d = p.latency
			}
			err := loads[i].add(round, func(side int) (load, error) { return call(servers[side], nodes, s, d) })
			if err != nil {
				return nil, err
			}
		}
	}
	for i, s := range sets {
		rows = append(rows, s.rows(section, loads[i])...)
	}
	return rows, nil
}

// halfOf returns the time between two calls of a process at half of a server's highest
// load.
func halfOf(s *server, nodes []*callers, set setting, p plan) (time.Duration, error) {
	set.every = 0
	var rates []float64
	for range p.rounds {
		l, err := call(s, nodes, set, p.erlang)
		if err != nil {
			return 0, err
		}
		rates = append(rates, l.rate)
	}
	return time.Duration(float64(set.processes) / (median(rates) / 2) * 1e9), nil
}

func (s setting) rows(section string, loads versus[load]) (rows []row) {
	what := fmt.Sprintf("%s, %d", s.request, s.processes)
	if s.nodes > 1 {
		what += fmt.Sprintf(" on %d nodes", s.nodes)
	}
	if s.depth > 1 {
		what += fmt.Sprintf(" with %d by send_request", s.depth)
	}
	add := func(unit string, t target, of func(load) float64) {
		rows = append(rows, loads.row(section, what, unit, t, of))
	}
	if s.depth == 1 { // more are limited by the caller
		add("calls/s", s.rate, func(l load) float64 { return l.rate })
	}
	add("µs CPU", s.cpu, func(l load) float64 { return l.cpu })
	add("sleeps", less, func(l load) float64 { return l.sleeps })
	for i, q := range quantiles {
		add(q.unit, s.late[i], func(l load) float64 { return l.quantile(q.of) })
	}
	return rows
}

// loops runs a busy loop on each processor, at the priority of the servers.
func (w *world) loops() (stop func(), err error) {
	stop = func() {}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return stop, err
	}
	for cpu := range 8 * len(all) * int(unsafe.Sizeof(all[0])) {
		if !all.IsSet(cpu) {
			continue
		}
		loop := w.command(w.self, "loop", strconv.Itoa(cpu))
		if err := loop.Start(); err != nil {
			return stop, err
		}
		others := stop
		stop = func() { others(); end(loop) }
	}
	return stop, nil
}

// loop is this program, run again with the argument loop and a processor.
func loop(cpu string) {
	n, err := strconv.Atoi(cpu)
	var there unix.CPUSet
	there.Set(n)
	runtime.LockOSThread()
	if err := errors.Join(err, unix.SchedSetaffinity(0, &there)); err != nil {
		log.Fatal(err)
	}
	for {
	}
}

// erlangAtWork runs an Erlang node with more to do than the processors have time
// for.
func (w *world) erlangAtWork() (stop func(), err error) {
	cmd := w.erl(w.near, "work", "bench_work", "-noinput")
	if err := cmd.Start(); err != nil {
		return func() {}, err
	}
	return func() { end(cmd) }, nil
}
