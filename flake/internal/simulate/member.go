package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

// Member is a node of a fleet, through all its processes.
type Member struct {
	fleet   *fleet
	index   int
	machine *Machine
	task    *task         // of the process, that runs
	frozen  time.Duration // until when (true time) it does not
	cut     bool          // from the store

	// Of the process.
	running  bool
	crashed  bool
	stopping bool
	keeper   Keeper
	tasks    []*task
	reserves *task // the task that is taking ids
	due      bool  // the keeper is asked to step

	made int
}

func newMember(f *fleet, index int) *Member {
	m := &Member{fleet: f, index: index, machine: newMachine(f.rng)}
	m.machine.now = f.now
	m.machine.trace = func(format string, args ...any) { f.trace("%d: %s", index, fmt.Sprintf(format, args...)) }
	if f.rng.IntN(2) == 0 { // clocks differ
		m.machine.off = f.span(f.skew()) * time.Duration(1-2*f.rng.IntN(2))
	}
	m.machine.preempt = m.hesitate
	m.begin(0)
	return m
}

// hesitate has whoever read the clock for an id be held up before using it: alone, or
// the whole process.
func (m *Member) hesitate() {
	t := m.task
	if m.reserves != t || t == nil || m.fleet.calm {
		return
	}
	d := m.fleet.span(3 * hold)
	if m.fleet.rng.IntN(2) == 0 {
		m.frozen = max(m.frozen, m.fleet.now+d)
		m.fleet.report.Pauses++
	}
	t.wait(d)
}

// begin has a process be started after a while.
func (m *Member) begin(after time.Duration) {
	m.tasks = []*task{m.fleet.spawn(m, func(t *task) {
		t.wait(after)
		m.process(t)
	})}
}

// die ends the process, perhaps with the machine; another follows.
func (m *Member) die() {
	f := m.fleet
	for _, t := range m.tasks {
		if !t.over {
			t.end()
		}
	}
	if m.running || m.crashed {
		f.report.Kills++
	}
	m.crashed, m.running, m.stopping, m.due, m.reserves, m.keeper = false, false, false, false, nil, nil
	clear(m.machine.Disk.locked)
	m.machine.Disk.armed = 0
	wait := f.span(2 * hold)
	switch f.rng.IntN(6) {
	case 0:
		f.trace("%d: power cut", m.index)
		m.machine.Disk.powerCut()
	case 1: // a container that is started anew
		f.trace("%d: killed, and its disk is gone", m.index)
		m.machine.Disk = newDisk(m.machine)
	default:
		f.trace("%d: killed", m.index)
	}
	m.begin(wait)
}

// process is one, from its start to its end.
func (m *Member) process(t *task) {
	f := m.fleet
	m.running = true
	f.report.Starts++
	if f.Keep != nil {
		m.keeper = f.Keep(m)
	} else {
		m.keeper = newOwner(m)
	}
	caller := f.spawn(m, m.calls)
	m.tasks = append(m.tasks, caller)
	for !m.stopping {
		err := m.keeper.Step()
		f.trace("%d: step: %v", m.index, err)
		pause := hold / 3
		switch {
		case errors.Is(err, workers.ErrNoneFree):
			pause = hold / 12
		case err != nil:
			pause = time.Second
		}
		// Kicked, it comes at once.
		for end := m.machine.now + pause; m.machine.now < end && !m.due && !m.stopping; {
			t.wait(min(end-m.machine.now, hold/12))
		}
		m.due = false
	}
	for !caller.over {
		t.wait(100 * time.Millisecond)
	}
	m.running, m.stopping, m.keeper = false, false, nil
	clear(m.machine.Disk.locked)
	f.report.Stops++
	m.begin(f.span(2 * hold))
}

// calls takes ids with whatever number there is.
func (m *Member) calls(t *task) {
	f := m.fleet
	var last uint64
	for !m.stopping {
		bound, number := m.keeper.Now()
		if bound == nil {
			t.wait(f.span(5 * time.Second))
			continue
		}
		if end, err := m.generate(t, bound, number); err != nil {
			f.trace("%d: generator of %d: %v", m.index, number, err)
			t.wait(f.span(5 * time.Second))
		} else {
			last = max(last, end)
		}
	}
	f.trace("%d: stops, with its last id at %d", m.index, last)
	m.keeper.Stop(last)
}

// generate opens a generator, and takes ids until its number is another or the process
// stops.
func (m *Member) generate(t *task, bound durable.Bound, number uint64) (last uint64, err error) {
	f, seen := m.fleet, bound
	if f.Bound != nil {
		bound = f.Bound(bound)
	}
	g, err := fleetGenerator(m.machine)
	if err != nil {
		return 0, err
	}
	sleep := func(_ context.Context, d time.Duration) error {
		t.wait(d)
		if now, _ := m.keeper.Now(); now != seen || m.stopping {
			return errors.New("it is not wanted any more")
		}
		return nil
	}
	k, err := durable.OpenOn(context.Background(), m.machine.Disk, sleep, Path, g, durable.Options{Bound: bound, AllowableDowntime: 1000 * time.Hour})
	if err != nil {
		return 0, err
	}
	g.Limit().Extend = func(_ context.Context, milli uint64) error {
		reserves := m.reserves
		m.reserves = nil
		defer func() { m.reserves = reserves }()
		if milli > bound.Milli() {
			m.due = true
			return tick.ErrTimestampNotSaved
		}
		return k.Renew()
	}
	tenure := f.ledger.tenure(m, number)
	for !m.stopping {
		if now, _ := m.keeper.Now(); now != seen {
			break
		}
		k.Renew()
		for range f.rng.IntN(4) {
			m.take(t, g, tenure)
		}
		t.wait(f.span(4 * time.Second))
	}
	k.Close()
	last, _ = g.Last()
	return last, nil
}

// take takes a few ids.
func (m *Member) take(t *task, g *tick.Generator, of *tenure) {
	m.reserves = t
	milli, first, n, err := g.TryReserve(1 + m.fleet.rng.IntN(8))
	m.reserves = nil
	if err == nil {
		m.made += n
		m.fleet.ledger.add(of, milli, first, n)
	}
}
