package simulate

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

// Fleet configures a simulation of several nodes that share a store, with fewer numbers than
// nodes. Machines fail like those of [Config], and are also paused and cut off. Answers from the
// store are lost or delayed, and the store is restored from snapshots.
type Fleet struct {
	// Restore selects whether the store is restored and what the operator then does.
	Restore Restore
	// If Copies is set, nodes start on copies of the disks of running nodes.
	Copies bool

	// If Shared is set, nodes start on the disk of a running node, whose locks have no effect.
	Shared bool

	// If Far is set, clocks are set far ahead, while an operator releases numbers.
	Far bool

	// If Often is set, restores and cut-off nodes are very frequent, and clocks differ by at
	// most a second.
	Often bool

	// If Stops is set, nodes stop cleanly very often, and clocks differ by less than hold, so
	// that a node whose clock is behind claims the number of a node that stopped.
	Stops bool

	// Functions that inject faults in control runs, or nil.
	Disk   func(mark.Disk) mark.Disk           // replaces the disk of a process
	Store  func(workers.Store) workers.Store   // replaces a node's store
	Bound  func(durable.Bound) durable.Bound   // replaces a node's bound
	Memory func(workers.Memory) workers.Memory // replaces a node's memory
	Admin  func(workers.Store) workers.Store   // replaces an operator's store
}

// Restore selects whether the store is restored and what the operator then does.
type Restore int

const (
	Never   Restore = iota // the store is never restored
	Steps                  // the operator does what package workers documents
	Nothing                // the operator does nothing
)

const (
	hold      = time.Minute
	fleetSize = 5
	numbers   = 4
	formats   = 4 // each process has generators of at least one of them
	lifetime  = 14 * hold
	timeout   = 5 * time.Second // of a request to the store

	// fleetUnit is the length of a tick in ms. It is long, so that two nodes with the same
	// number repeat ids if they make any at about the same time.
	fleetUnit = tick.MaxUnit
)

// FleetReport counts events and broken rules in one or more fleets.
type FleetReport struct {
	Lives, IDs, Starts, Claims, Resumed, Lost int
	Kills, Stops, Pauses, Cuts, ClockFaults   int
	Unanswered, Late, Restores, Copied        int
	Shares, Damages                           int
	None                                      int // steps that found no free number
	Released                                  int // releases by an operator
	Removed                                   int // keys deleted by an operator
	Spent, Below                              int // releases that left a spent period; claims below one
	Hours                                     float64

	Duplicates, Overlaps, Disorders, PastMark, Stuck int
	Shared                                           int // fleets with overlaps

	Finding
}

// Wrong returns the number of broken rules.
func (r FleetReport) Wrong() int {
	return r.Duplicates + r.Overlaps + r.Disorders + r.PastMark + r.Stuck
}

// ManyFleets runs fleets with consecutive seeds from first on, until the given number of nodes
// have run.
func ManyFleets(f Fleet, first uint64, lives int) FleetReport {
	fleets := uint64((lives + fleetSize - 1) / fleetSize)
	return each(fleets, func(i uint64) FleetReport { return RunFleet(f, first+i, nil) })
}

// fleet is a running [Fleet].
type fleet struct {
	Fleet
	rng    *rand.Rand
	now    time.Duration // true time since 1970
	tasks  []*task
	store  *store
	nodes  []*fleetNode
	ahead  time.Duration // the most by which any clock has been ahead of true time
	report *FleetReport
	ledger *fleetLedger
	calm   bool // whether faults have ended
	seed   uint64
	trace  func(format string, args ...any)
}

// RunFleet runs the fleet with the given seed. It reports every event to trace, unless trace is
// nil.
func RunFleet(of Fleet, seed uint64, trace func(format string, args ...any)) FleetReport {
	report := FleetReport{Lives: fleetSize}
	f := &fleet{
		Fleet: of, rng: rand.New(rand.NewPCG(seed, 1)), seed: seed, report: &report, trace: func(string, ...any) {},
	}
	f.now = 1_700_000_000*time.Second + time.Duration(f.rng.Int64N(int64(time.Hour)))
	born := f.now
	if trace != nil {
		f.trace = func(format string, args ...any) {
			trace("%s %s", (f.now - born).String(), fmt.Sprintf(format, args...))
		}
	}
	f.store = newStore(f)
	f.ledger = newFleetLedger(f)
	for i := range fleetSize {
		f.nodes = append(f.nodes, newFleetNode(f, i))
	}
	f.spawn(nil, f.faults)
	f.run(born + lifetime)
	f.settle()
	for _, t := range f.tasks {
		t.end()
	}
	report.Hours = (f.now - born).Hours()
	report.Shared = min(report.Overlaps, 1)
	return report
}

// settle ends all faults. Then at least one node per number must make ids.
func (f *fleet) settle() {
	f.calm = true
	f.trace("all is well from here on")
	f.store.down = false
	for _, m := range f.nodes {
		m.frozen, m.cut = 0, false
		m.machine.drift, m.machine.frozen, m.machine.ends = 0, 0, 0
		m.machine.Disk.fails, m.machine.Disk.slow, m.machine.Disk.armed = nil, 0, 0
		m.machine.off = 0
		m.machine.steps++
	}
	f.run(f.now + 10*hold)
	before := f.report.IDs
	well := 0
	for _, m := range f.nodes {
		m.made = 0
	}
	f.run(f.now + hold)
	for _, m := range f.nodes {
		if m.made > 0 {
			well++
		}
	}
	if well < numbers {
		f.wrong(&f.report.Stuck, "all is well, but only %d of %d nodes make ids, %d in all",
			well, fleetSize, f.report.IDs-before)
	}
}

func (f *fleet) wrong(count *int, format string, args ...any) {
	f.trace("WRONG: "+format, args...)
	f.report.note(count, f.seed, fmt.Sprintf(format, args...))
}

func (f *fleet) span(limit time.Duration) time.Duration {
	return span(f.rng, 10*time.Millisecond, 6, limit)
}

// faults is the task that causes faults.
func (f *fleet) faults(t *task) {
	for !f.calm {
		t.wait(f.span(time.Minute))
		if f.calm {
			return
		}
		m := f.nodes[f.rng.IntN(fleetSize)]
		p := f.rng.IntN(100)
		if f.Often && f.rng.IntN(2) == 0 {
			p = []int{50, 85, 90}[f.rng.IntN(3)]
		}
		if f.Far && f.rng.IntN(4) == 0 {
			f.far(m)
			p = 94
		}
		if f.Stops && f.rng.IntN(2) == 0 {
			p = 16
		}
		if f.Shared && f.rng.IntN(3) == 0 {
			f.share(m, f.nodes[f.rng.IntN(fleetSize)])
			continue
		}
		switch {
		case p < 16:
			m.die()
		case p < 24:
			m.stopping = true
		case p < 42:
			m.frozen = f.now + f.span(4*hold)
			f.report.Pauses++
			f.trace("%d is paused for %v", m.index, m.frozen-f.now)
		case p < 56:
			m.cut = !m.cut
			f.report.Cuts++
			f.trace("%d is cut off: %v", m.index, m.cut)
		case p < 60:
			f.store.down = !f.store.down
			f.trace("the store is down: %v", f.store.down)
		case p < 78:
			f.clock(m)
		case p < 84:
			m.machine.Disk.armed = 1 + f.rng.IntN(24)
		case p < 88:
			f.store.snapshot()
		case p < 92 && f.Restore != Never:
			f.store.restore()
		case p < 94 && f.Copies:
			f.copies(m, f.nodes[f.rng.IntN(fleetSize)])
		case p < 96:
			f.release()
		case p < 98 && f.Restore == Steps: // run by mistake or repeatedly
			f.store.afterRestore(false)
		case f.Often: // clocks are near enough for this
			f.store.remove(1 + f.rng.Uint64N(numbers))
		}
	}
}

// far sets a node's clock far ahead, or corrects it, as if its machine had been replaced.
func (f *fleet) far(m *fleetNode) {
	by := -m.machine.off
	if f.rng.IntN(2) == 0 {
		by += 3*hold + f.span(3*hold)
	}
	m.machine.shift(by)
	f.trace("%d: clock steps by %v", m.index, by)
	m.die()
	m.machine.Disk = newDisk(m.machine)
}

// release releases a number, as an operator does.
func (f *fleet) release() {
	f.report.Released++
	var s workers.Store = f.store
	if f.Admin != nil {
		s = f.Admin(s)
	}
	v, err := workers.Release(context.Background(), s, prefix, 1+f.rng.Uint64N(numbers), uint64(f.now/time.Millisecond))
	if v.Spent.Mark > 0 {
		f.report.Spent++
	}
	f.trace("released: %v, %v", v, err)
}

// clock changes a clock by so little that the node can soon make ids again.
func (f *fleet) clock(m *fleetNode) {
	f.report.ClockFaults++
	by := time.Duration(0)
	switch f.rng.IntN(4) {
	case 0:
		m.machine.drift = f.rng.Int64N(1001) - 500
	case 1:
		by = -m.machine.off
	default:
		by = f.span(f.skew())*time.Duration(1-2*f.rng.IntN(2)) - m.machine.off/2
	}
	m.machine.shift(by)
	f.trace("%d: clock steps by %v, is off by %v", m.index, by, m.machine.off)
}

// skew returns the largest amount by which a clock is set ahead or back.
func (f *fleet) skew() time.Duration {
	switch {
	case f.Often:
		return time.Second
	case f.Stops:
		return hold / 2
	}
	return 3 * hold
}

// copies restarts one node on a copy of another node's disk.
func (f *fleet) copies(from, to *fleetNode) {
	if from == to || !from.running {
		return
	}
	f.report.Copied++
	f.trace("%d gets a copy of the disk of %d", to.index, from.index)
	to.die()
	clear(to.machine.Disk.live)
	for path, node := range from.machine.Disk.live {
		to.machine.Disk.live[path] = &inode{slices.Clone(node.data), nil}
	}
}

// share restarts one node on the disk of another, without locks, until an operator kills both.
func (f *fleet) share(from, to *fleetNode) {
	disk := from.machine.Disk
	if from == to || !from.running || disk.unlocked || to.machine.Disk.unlocked {
		return
	}
	f.report.Shares++
	f.trace("%d gets the disk of %d", to.index, from.index)
	to.die()
	to.machine.Disk, disk.unlocked = disk, true
	f.spawn(nil, func(t *task) {
		t.wait(f.span(hold))
		f.trace("%d and %d no longer have the same disk", to.index, from.index)
		disk.unlocked = false
		for _, m := range []*fleetNode{from, to} {
			m.die()
		}
		to.machine.Disk = newDisk(to.machine)
	})
}

// task is a goroutine in virtual time. Only one task runs at a time; it runs until it waits.
type task struct {
	f     *fleet
	m     *fleetNode // the node that crashes if the task does; may be nil
	at    time.Duration
	next  func() (time.Duration, bool)
	stop  func()
	yield func(time.Duration) bool
	over  bool
}

// spawn starts a task. If the task crashes, so does m, unless m is nil.
func (f *fleet) spawn(m *fleetNode, do func(*task)) *task {
	t := &task{f: f, m: m, at: f.now}
	t.next, t.stop = iter.Pull(func(yield func(time.Duration) bool) {
		t.yield = yield
		if crashed(func() { do(t) }) && m != nil && !t.over {
			m.crashed = true
		}
	})
	f.tasks = append(f.tasks, t)
	return t
}

// wait waits while true time passes and other tasks run.
func (t *task) wait(d time.Duration) {
	if !t.yield(d) {
		panic(crash{})
	}
}

// end ends a waiting task.
func (t *task) end() {
	t.over = true
	t.stop()
}

// run runs the tasks until the given point in true time.
func (f *fleet) run(until time.Duration) {
	for {
		var first *task
		left := f.tasks[:0]
		for _, t := range f.tasks {
			if t.over {
				continue
			}
			left = append(left, t)
			if t.m != nil {
				t.at = max(t.at, t.m.frozen)
			}
			if first == nil || t.at < first.at {
				first = t
			}
		}
		f.tasks = left
		if first == nil || first.at > until {
			break
		}
		f.now = max(f.now, first.at)
		f.resume(first)
	}
	f.now = max(f.now, until)
}

func (f *fleet) resume(t *task) {
	m := t.m
	if m != nil {
		m.task = t
		m.machine.pass(max(f.now-m.machine.now, 0))
		f.ahead = max(f.ahead, m.machine.off)
	}
	d, more := t.next()
	t.over = t.over || !more
	t.at = f.now + d
	if m == nil {
		return
	}
	t.at = max(t.at, m.machine.now+d)
	if m.crashed {
		m.die()
	}
}

// fleetLedger records every id of a fleet, and finds broken rules: a duplicate id; two owners of
// a number with ids for the same time; ids of a node that do not ascend; an id later than every
// mark that the store ever had for its number.
type fleetLedger struct {
	f       *fleet
	runs    runs[place]
	tenures map[kind][]*tenure
	last    map[lasting]uint64 // the tick of the last id
	own     map[*Disk]uint64   // numbers that are not from the store
}

// kind is the part of an id that does not depend on when it is made.
type kind struct {
	format int
	number uint64
}

type place struct {
	kind
	milli uint64
}

// lasting identifies a generator across all processes with the same disk.
type lasting struct {
	disk   *Disk
	format int
}

// tenure is a node's generator while it has a given number.
type tenure struct {
	kind
	m           *fleetNode
	first, last uint64 // the ticks of its first and last id
	used        int    // the number of sequences used in the last tick
}

func newFleetLedger(f *fleet) *fleetLedger {
	return &fleetLedger{f, runs[place]{}, map[kind][]*tenure{}, map[lasting]uint64{}, map[*Disk]uint64{}}
}

func (l *fleetLedger) tenure(m *fleetNode, format int, number uint64) *tenure {
	return &tenure{kind: kind{format, number}, m: m}
}

// ownNumber returns the number of the generators on a disk that do not use the store.
func (l *fleetLedger) ownNumber(d *Disk) uint64 {
	if l.own[d] == 0 {
		l.own[d] = uint64(numbers + 1 + len(l.own))
	}
	return l.own[d]
}

func (l *fleetLedger) add(of *tenure, milli uint64, first, n int) {
	r, node := l.f.report, lasting{of.m.machine.Disk, of.format}
	r.IDs += n
	if of.first == 0 {
		of.first = milli
		l.tenures[of.kind] = append(l.tenures[of.kind], of)
		if milli <= l.last[node] {
			l.f.wrong(&r.Disorders, "%d: the first id of %v, at %d, is not above the last, at %d",
				of.m.index, of.kind, milli, l.last[node])
		}
	} else if milli < of.last || milli == of.last && first < of.used {
		l.f.wrong(&r.Disorders, "%d: id %d:%d after %d:%d", of.m.index, milli, first, of.last, of.used)
	}
	of.last, of.used, l.last[node] = milli, first+n, milli
	for _, other := range l.tenures[of.kind] {
		if other != of && other.first <= milli && of.first <= other.last {
			l.f.wrong(&r.Overlaps, "%v: %d makes ids at %d, and so does %d", of.kind, of.m.index, milli, other.m.index)
			break
		}
	}
	if l.runs.add(place{of.kind, milli}, run{uint32(first), uint32(first + n - 1)}) {
		l.f.wrong(&r.Duplicates, "%v: id %d:%d of node %d repeats", of.kind, milli, first, of.m.index)
	}
	if of.number <= numbers && milli > l.f.store.marks[of.number] {
		l.f.wrong(&r.PastMark, "number %d: id at %d, with the mark at %d", of.number, milli, l.f.store.marks[of.number])
	}
}
