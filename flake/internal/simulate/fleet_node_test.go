package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

// fleetNode is a node of a fleet, across all its processes.
type fleetNode struct {
	fleet   *fleet
	index   int
	machine *Machine
	task    *task         // the running task of the process
	frozen  time.Duration // until when (true time) the process is paused
	cut     bool          // the store cannot be reached

	// The state of the current process.
	running  bool
	crashed  bool
	stopping bool
	set      *generators.Set[*generator]
	tasks    []*task
	reserves *task // the task that is taking ids
	due      bool  // the owner must step immediately
	seen     int   // the highest revision in an answer from the store
	sign     bool  // an answer showed that the store was restored

	made int
}

// generator is a generator of a format with long ticks.
type generator struct {
	*tick.Generator
	marker *durable.Marker
	tenure *tenure
}

func (g *generator) Close() error { return g.marker.Close() }

func newFleetNode(f *fleet, index int) *fleetNode {
	m := &fleetNode{fleet: f, index: index, machine: newMachine(f.rng)}
	m.machine.now = f.now
	m.machine.trace = func(format string, args ...any) { f.trace("%d: %s", index, fmt.Sprintf(format, args...)) }
	if f.rng.IntN(2) == 0 { // clocks differ
		m.machine.off = f.span(f.skew()) * time.Duration(1-2*f.rng.IntN(2))
	}
	m.machine.preempt = m.hesitate
	m.begin(0)
	return m
}

// hesitate pauses a task that has just read the clock for an id, or the task's whole process.
func (m *fleetNode) hesitate() {
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

// begin starts a process after the given time.
func (m *fleetNode) begin(after time.Duration) {
	m.tasks = []*task{m.fleet.spawn(m, func(t *task) {
		t.wait(after)
		m.process(t)
	})}
}

// die kills the process, perhaps also cutting the power or replacing the disk, and starts another
// one.
func (m *fleetNode) die() {
	f := m.fleet
	for _, t := range m.tasks {
		if !t.over {
			t.end()
		}
	}
	if m.running || m.crashed {
		f.report.Kills++
	}
	m.ended()
	m.machine.Disk.armed = 0
	wait := f.span(2 * hold)
	if f.rng.IntN(4) == 0 {
		if what := m.machine.Disk.damage(Path); what != "" {
			f.report.Damages++
			f.trace("%d: damage: %s", m.index, what)
		}
	}
	switch f.rng.IntN(6) {
	case 0:
		f.trace("%d: power cut", m.index)
		m.machine.Disk.powerCut()
	case 1: // like a container that is restarted
		f.trace("%d: killed, and its disk is gone", m.index)
		m.machine.Disk = newDisk(m.machine)
	default:
		f.trace("%d: killed", m.index)
	}
	m.begin(wait)
}

// ended resets the state when a process has ended.
func (m *fleetNode) ended() {
	m.crashed, m.running, m.stopping, m.due, m.reserves, m.set, m.seen, m.sign =
		false, false, false, false, nil, nil, 0, false
	clear(m.machine.Disk.locked)
}

func (m *fleetNode) process(t *task) {
	f := m.fleet
	m.running = true
	f.report.Starts++
	m.set = m.open()
	mover, caller := f.spawn(m, m.moves), f.spawn(m, m.calls)
	m.tasks = append(m.tasks, mover, caller)
	var had *workers.Claim
	for !m.stopping {
		err := m.set.Owner().Step(context.Background())
		f.trace("%d: step: %v", m.index, err)
		m.count(&had)
		pause := hold / 3
		switch {
		case errors.Is(err, workers.ErrNoneFree):
			f.report.None++
			pause = hold / 12
		case err != nil:
			pause = time.Second
		}
		// A step that is due ends the pause.
		for end := m.machine.now + pause; m.machine.now < end && !m.due && !m.stopping; {
			t.wait(min(end-m.machine.now, hold/12))
		}
		m.due = false
	}
	for !mover.over || !caller.over {
		t.wait(100 * time.Millisecond)
	}
	f.trace("%d: stops, with its last id at %d", m.index, m.set.Marks().Latest())
	if err := m.set.Close(); err != nil {
		f.trace("%d: stops: %v", m.index, err)
	}
	m.ended()
	f.report.Stops++
	m.begin(f.span(2 * hold))
}

// count counts a claim if it is not *had.
func (m *fleetNode) count(had **workers.Claim) {
	c, _ := m.set.Owner().Claim()
	if c == *had {
		return
	}
	switch r := m.fleet.report; {
	case c.Resumed():
		r.Resumed++
	case *had != nil:
		r.Lost++
	default:
		r.Claims++
	}
	*had = c
}

// open opens the set of a process's generators, initially empty.
func (m *fleetNode) open() *generators.Set[*generator] {
	f := m.fleet
	var store workers.Store = client{m}
	if f.Store != nil {
		store = f.Store(store)
	}
	c := workers.Config{
		Store: store, Prefix: prefix, First: 1, Last: numbers, Hold: hold,
		Name: fmt.Sprint("node", m.index), Random: f.rng.Uint64,
	}
	if f.Memory != nil {
		c.Memory = f.Memory(memory{m})
	}
	var disk mark.Disk = m.machine.Disk
	if f.Disk != nil {
		disk = f.Disk(disk)
	}
	linger := []int{0, 1, 3, 60}[f.rng.IntN(4)]
	set, err := generators.OpenOn[*generator](disk, m.sleep, linger,
		generators.Config{Path: Path, Clock: m.machine.NewClock(), Numbers: &c})
	if err != nil {
		f.trace("%d: %v", m.index, err)
		panic(crash{})
	}
	return set
}

// memory is the memory of a process, for control runs. It works once open has returned.
type memory struct{ *fleetNode }

func (m memory) Number() *workers.Kept          { return m.set.Marks().Number() }
func (m memory) Remember(k *workers.Kept) error { return m.set.Marks().Remember(k) }
func (m memory) Latest() uint64                 { return m.set.Marks().Latest() }

// sleep sleeps. It fails if the number has changed during the sleep, or the process is stopping.
func (m *fleetNode) sleep(_ context.Context, d time.Duration) error {
	claim, _ := m.set.Owner().Claim()
	m.task.wait(d)
	if now, _ := m.set.Owner().Claim(); now != claim || m.stopping {
		return errors.New("the number has changed, or the process is stopping")
	}
	return nil
}

// moves calls Move until the process stops.
func (m *fleetNode) moves(t *task) {
	for !m.stopping {
		if err := m.set.Move(context.Background()); err != nil {
			m.fleet.trace("%d: move: %v", m.index, err)
		}
		t.wait(m.fleet.span(time.Second))
	}
}

// calls opens some generators once the node has a number, and takes ids.
func (m *fleetNode) calls(t *task) {
	f := m.fleet
	for claim, _ := m.set.Owner().Claim(); claim == nil; claim, _ = m.set.Owner().Claim() {
		if t.wait(f.span(5 * time.Second)); m.stopping {
			return
		}
	}
	var all []*generators.Generator[*generator]
	for _, i := range append([]int{0}, f.rng.Perm(formats - 1)[:f.rng.IntN(formats)]...) {
		if len(all) > 0 {
			i++
		}
		own := !f.Copies && f.rng.IntN(8) == 0 // whether the number is not from the store
		for !m.stopping {
			g, err := m.set.Add(context.Background(), NameOf(i), !own, m.opener(i))
			if err == nil {
				all = append(all, g)
				break
			}
			f.trace("%d: generator %d: %v", m.index, i, err)
			t.wait(f.span(5 * time.Second))
		}
	}
	for !m.stopping {
		g := all[f.rng.IntN(len(all))].Get()
		g.marker.Renew()
		for range f.rng.IntN(4) {
			m.take(t, g)
		}
		t.wait(f.span(4 * time.Second))
	}
}

// opener returns a function that opens a generator of a format.
func (m *fleetNode) opener(format int) generators.Opener[*generator] {
	return func(ctx context.Context, name string, number uint64, bound durable.Bound) (*generator, error) {
		f := m.fleet
		switch {
		case bound == nil:
			number = f.ledger.ownNumber(m.machine.Disk)
		case f.Bound != nil:
			bound = f.Bound(bound)
		}
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast - tick.MaxLast%fleetUnit, Unit: fleetUnit, PerTick: 1 << 10},
			m.machine.NewClock())
		if err != nil {
			return nil, err
		}
		k, err := durable.OpenOn(ctx, name, ids,
			durable.Options{Marks: m.set.Marks(), Bound: bound, AllowableDowntime: 1000 * time.Hour})
		if err != nil {
			return nil, err
		}
		ids.Limit().Extend = func(_ context.Context, milli uint64) error {
			reserves := m.reserves
			m.reserves = nil
			defer func() { m.reserves = reserves }()
			if bound != nil && milli > bound.Milli() {
				m.due = true
				return tick.ErrTimestampNotSaved
			}
			return k.Renew()
		}
		return &generator{ids, k, f.ledger.tenure(m, format, number)}, nil
	}
}

func (m *fleetNode) take(t *task, g *generator) {
	m.reserves = t
	milli, first, n, err := g.TryReserve(1 + m.fleet.rng.IntN(8))
	m.reserves = nil
	if err == nil {
		m.made += n
		m.fleet.ledger.add(g.tenure, milli, first, n)
	}
}
