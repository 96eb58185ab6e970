package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/workers"
)

// Fleet is what is to be simulated of several nodes that share a store: machines that
// fail as those of [Config] do, are paused and cut off; a store whose answers are lost
// or late, and that is restored from snapshots; and fewer numbers than nodes.
type Fleet struct {
	// Restore tells what is done when the store is restored.
	Restore Restore
	// Copies has disks of running nodes be copied and started elsewhere.
	Copies bool

	// Far has clocks be far ahead, and an operator who releases what they took.
	Far bool

	// Often has the store be restored all the time, and nodes be cut off from it; clocks
	// differ little then.
	Often bool

	// Stops has nodes stop in good order all the time, with clocks that differ by less
	// than hold: another then claims the number while its clock is behind.
	Stops bool

	// What the controls do otherwise: nil means as it should be.
	Store  func(workers.Store) workers.Store   // what a node makes of the store
	Bound  func(durable.Bound) durable.Bound   // of its bound
	Memory func(workers.Memory) workers.Memory // and of its memory
	Admin  func(workers.Store) workers.Store   // what an operator makes of the store
}

// Restore is what is done about a store that has forgotten.
type Restore int

const (
	Never   Restore = iota // it is not restored
	Steps                  // what package workers asks for
	Nothing                // nobody does anything
)

const (
	hold    = time.Minute
	members = 5
	numbers = 4
	formats = 4         // that a node has one to all of, each time it starts
	lasts   = 14 * hold // how long a life is
	answer  = 5 * time.Second

	// ids are of ticks as long as this, so that two nodes with one number that make
	// any at about a time make the same.
	fleetUnit = 1 << 10
)

// FleetReport counts what a number of fleets had and what went wrong.
type FleetReport struct {
	Lives, IDs, Starts, Claims, Resumed, Lost int
	Kills, Stops, Pauses, Cuts, ClockFaults   int
	Unanswered, Late, Restores, Copied        int
	None                                      int // times that no number was free
	Released                                  int // numbers, by an operator
	Spent, Below                              int // of these, with a spent time kept; claims below one
	Hours                                     float64

	Duplicates, Overlaps, Disorders, PastMark, Stuck int
	Shared                                           int // fleets with overlaps

	First string // the first thing that went wrong, in the life of Seed
	Seed  uint64
}

// Wrong is how many things went wrong.
func (r FleetReport) Wrong() int {
	return r.Duplicates + r.Overlaps + r.Disorders + r.PastMark + r.Stuck
}

func (r *FleetReport) add(o FleetReport) {
	for _, p := range []struct {
		to   *int
		more int
	}{
		{&r.Lives, o.Lives}, {&r.IDs, o.IDs}, {&r.Starts, o.Starts}, {&r.Claims, o.Claims},
		{&r.Resumed, o.Resumed}, {&r.Lost, o.Lost}, {&r.Kills, o.Kills}, {&r.Stops, o.Stops},
		{&r.Pauses, o.Pauses}, {&r.Cuts, o.Cuts}, {&r.ClockFaults, o.ClockFaults},
		{&r.Unanswered, o.Unanswered}, {&r.Late, o.Late}, {&r.Restores, o.Restores}, {&r.Copied, o.Copied},
		{&r.None, o.None}, {&r.Released, o.Released}, {&r.Spent, o.Spent}, {&r.Below, o.Below}, {&r.Duplicates, o.Duplicates}, {&r.Overlaps, o.Overlaps},
		{&r.Disorders, o.Disorders}, {&r.PastMark, o.PastMark}, {&r.Stuck, o.Stuck}, {&r.Shared, o.Shared},
	} {
		*p.to += p.more
	}
	r.Hours += o.Hours
	if o.First != "" && (r.First == "" || o.Seed < r.Seed) {
		r.First, r.Seed = o.First, o.Seed
	}
}

// ManyFleets lives the lives of seeds from first on, until there are so many of nodes.
func ManyFleets(f Fleet, first uint64, lives int) FleetReport {
	var total FleetReport
	fleets := uint64((lives + members - 1) / members)
	each(fleets, func(i uint64) FleetReport { return RunFleet(f, first+i, nil) }, total.add)
	return total
}

// fleet is the life of one.
type fleet struct {
	Fleet
	rng     *rand.Rand
	now     time.Duration // true time since 1970
	tasks   []*task
	store   *store
	members []*Member
	ahead   time.Duration // how far at most a clock was ahead of true time
	report  *FleetReport
	ledger  *fleetLedger
	calm    bool // nothing fails any more
	seed    uint64
	trace   func(format string, args ...any)
}

// RunFleet lives the life of a seed, and tells trace, unless nil, all that happens.
func RunFleet(of Fleet, seed uint64, trace func(format string, args ...any)) FleetReport {
	report := FleetReport{Lives: members}
	f := &fleet{Fleet: of, rng: rand.New(rand.NewPCG(seed, 1)), seed: seed, report: &report, trace: func(string, ...any) {}}
	f.now = 1_700_000_000*time.Second + time.Duration(f.rng.Int64N(int64(time.Hour)))
	born := f.now
	if trace != nil {
		f.trace = func(format string, args ...any) {
			trace("%s %s", (f.now - born).String(), fmt.Sprintf(format, args...))
		}
	}
	f.store = newStore(f)
	f.ledger = newFleetLedger(f)
	for i := range members {
		f.members = append(f.members, newMember(f, i))
	}
	f.spawn(nil, f.faults)
	f.run(born + lasts)
	f.settle()
	for _, t := range f.tasks {
		t.end()
	}
	report.Hours = (f.now - born).Hours()
	report.Shared = min(report.Overlaps, 1)
	return report
}

// settle has all faults end, and sees that there are as many nodes with ids as there
// are numbers.
func (f *fleet) settle() {
	f.calm = true
	f.trace("all is well from here on")
	f.store.down = false
	for _, m := range f.members {
		m.frozen, m.cut = 0, false
		m.machine.drift, m.machine.frozen, m.machine.ends = 0, 0, 0
		m.machine.Disk.fails, m.machine.Disk.slow, m.machine.Disk.armed = nil, 0, 0
		m.machine.off = 0
		m.machine.steps++
	}
	f.run(f.now + 10*hold)
	before := f.report.IDs
	well := 0
	for _, m := range f.members {
		m.made = 0
	}
	f.run(f.now + hold)
	for _, m := range f.members {
		if m.made > 0 {
			well++
		}
	}
	if well < numbers {
		f.wrong(&f.report.Stuck, "all is well, but only %d of %d nodes make ids, %d in all", well, members, f.report.IDs-before)
	}
}

func (f *fleet) wrong(count *int, format string, args ...any) {
	*count++
	f.trace("WRONG: "+format, args...)
	if f.report.First == "" {
		f.report.First, f.report.Seed = fmt.Sprintf(format, args...), f.seed
	}
}

// span draws a duration whose order of size is drawn first.
func (f *fleet) span(most time.Duration) time.Duration {
	size := 10 * time.Millisecond
	for size < most && f.rng.IntN(6) > 0 {
		size *= 4
	}
	return time.Duration(f.rng.Int64N(int64(min(size, most)))) + 1
}

// faults is the task that has things go wrong.
func (f *fleet) faults(t *task) {
	for !f.calm {
		t.wait(f.span(time.Minute))
		if f.calm {
			return
		}
		m := f.members[f.rng.IntN(members)]
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
			f.copies(m, f.members[f.rng.IntN(members)])
		case p < 96:
			f.release()
		case p < 98 && f.Restore == Steps: // nothing was restored, or it was seen to
			f.store.afterRestore(false)
		}
	}
}

// far has a machine be another, whose clock is far ahead, or right again.
func (f *fleet) far(m *Member) {
	by := -m.machine.off
	if f.rng.IntN(2) == 0 {
		by += 3*hold + f.span(3*hold)
	}
	m.machine.shift(by)
	f.trace("%d: clock steps by %v", m.index, by)
	m.die()
	m.machine.Disk = newDisk(m.machine)
}

// release is what an operator does.
func (f *fleet) release() {
	f.report.Released++
	var s workers.Store = admin{f.store}
	if f.Admin != nil {
		s = f.Admin(s)
	}
	v, err := workers.Release(context.Background(), s, prefix, 1+f.rng.Uint64N(numbers), uint64(f.now/time.Millisecond))
	if v.Spent.Mark > 0 {
		f.report.Spent++
	}
	f.trace("released: %v, %v", v, err)
}

// clock does something to a clock, no more than it takes to be caught up with.
func (f *fleet) clock(m *Member) {
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

// skew is how far clocks are set, at most.
func (f *fleet) skew() time.Duration {
	switch {
	case f.Often:
		return time.Second
	case f.Stops:
		return hold / 2
	}
	return 3 * hold
}

// copies has a node be started on a copy of another's disk.
func (f *fleet) copies(from, to *Member) {
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
