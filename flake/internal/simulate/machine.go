package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Machine is the clock and the disk of a node.
type Machine struct {
	Disk *Disk

	rng     *rand.Rand
	now     time.Duration // true time since 1970
	off     time.Duration // how far the clock is ahead of true time
	drift   int64         // the drift of the clock, in parts per million
	gained  time.Duration // the total drift, which monotonic time shares
	frozen  time.Duration // until when (true time) the clock stands still
	stopped time.Duration // the time that the frozen clock shows
	armed   int           // the number of clock reads until a step; 0 means no step
	step    time.Duration // the size of that step
	steps   int           // the number of steps so far
	ends    time.Duration // when (true time) the clock steps by undo; 0 means never
	undo    time.Duration
	jumped  time.Duration      // when (true time) the clock last went far ahead
	shown   [][2]time.Duration // the range of clock minus monotonic time, before each step
	top     time.Duration      // the latest time shown before a step back, in this process
	hurry   bool               // whether ids are made faster than ticks allow

	// preempt runs after the clock was read and before the reader continues. It models other
	// goroutines.
	preempt func()
	trace   func(format string, args ...any)
}

func newMachine(rng *rand.Rand) *Machine {
	m := &Machine{rng: rng, now: 1_700_000_000 * time.Second, trace: func(string, ...any) {}}
	m.now += time.Duration(rng.Int64N(int64(time.Hour)))
	m.Disk = newDisk(m)
	return m
}

// NewClock returns one of package tick's clocks, for a new process.
func (m *Machine) NewClock() tick.Clock { return m.newClock(tick.ClockOf) }

// NewMonotonicClock returns a clock that ignores steps, for a new process.
func (m *Machine) NewMonotonicClock() tick.Clock { return m.newClock(tick.MonotonicOf) }

func (m *Machine) newClock(of func(wall, mono func() int64) tick.Clock) tick.Clock {
	clock := of(
		func() int64 { return int64(m.wall()) },
		func() int64 { return int64(m.now + m.gained) })
	return func() uint64 { return m.read(clock) }
}

// Clock returns the time on the machine's clock, in milliseconds since 1970.
func (m *Machine) Clock() uint64 { return m.read(m.milli) }

// read reads a clock, which takes time.
func (m *Machine) read(clock tick.Clock) uint64 {
	switch {
	case m.now < m.frozen:
		m.pass(time.Duration(m.rng.IntN(100_000)))
	case m.hurry:
		m.pass(time.Duration(m.rng.IntN(20)))
	default:
		m.pass(time.Duration(m.rng.IntN(2000)))
	}
	if m.armed > 0 {
		if m.armed--; m.armed == 0 {
			m.shift(m.step)
		}
	}
	milli := clock()
	if m.preempt != nil && m.rng.IntN(32) == 0 {
		m.preempt()
	}
	return milli
}

// Undisturbed runs f without preemption.
func (m *Machine) Undisturbed(f func()) {
	others := m.preempt
	m.preempt = nil
	defer func() { m.preempt = others }()
	f()
}

// Sleep implements tick.Sleeper.
func (m *Machine) Sleep(_ context.Context, d time.Duration) error {
	m.pass(d + time.Duration(m.rng.IntN(int(time.Millisecond))))
	return nil
}

func (m *Machine) wall() time.Duration {
	if m.now < m.frozen {
		return m.stopped
	}
	return m.now + m.off
}

func (m *Machine) milli() uint64 { return millis(m.wall()) }

func millis(t time.Duration) uint64 { return uint64(max(t, 0) / time.Millisecond) }

// times is a range of times, from low to high.
type times struct{ low, high uint64 }

// view appends the times that a node's clock may show to v. The first is the machine's time. A node
// doubts a step far ahead for a while. So if doubtful is set, there is one more range for each
// step: what the clock would show now without that step and later ones. These are ranges because
// a node may believe that a frozen clock has continued since it was last read.
func (m *Machine) view(v []times, doubtful bool) []times {
	now, mono := m.milli(), m.now+m.gained
	v = append(v, times{now, now})
	if doubtful {
		for _, ahead := range m.shown {
			v = append(v, times{millis(mono + ahead[0]), millis(mono + ahead[1])})
		}
	}
	return v
}

func (m *Machine) doubtful() bool {
	return m.jumped > 0 && m.now-m.jumped < tick.Doubt+2*time.Second // nodes read the clock each second
}

// showed reports whether a clock showed the tick of milli at some point between two views.
func showed(milli, unit uint64, before, after []times) bool {
	for i := range min(len(before), len(after)) {
		if milli+unit > before[i].low && milli <= after[i].high {
			return true
		}
	}
	return false
}

// pass lets true time pass, while the clock drifts.
func (m *Machine) pass(d time.Duration) {
	if m.ends > 0 && m.now+d >= m.ends {
		first := m.ends - m.now
		m.drifts(first)
		m.shift(m.undo)
		d -= first
	}
	m.drifts(d)
}

func (m *Machine) drifts(d time.Duration) {
	gain := time.Duration(int64(d) / 1_000_000 * m.drift)
	m.now += d
	m.off += gain
	m.gained += gain
}

// shift steps the clock.
func (m *Machine) shift(by time.Duration) {
	m.trace("clock steps by %v", by)
	m.shown = append(m.shown, [2]time.Duration{m.wall() - m.now - m.gained, m.off - m.gained})
	if by < 0 {
		m.top = max(m.top, m.now+m.off)
	}
	shown := m.wall() - m.now
	if m.frozen > 0 { // the clock may not have been read since the freeze ended
		shown = min(shown, m.stopped-m.frozen)
	}
	if m.off+by-shown > tick.MaxStep {
		m.jumped = m.now
	}
	m.off += by
	m.frozen, m.ends = 0, 0
	m.steps++
}

// glitch steps the clock, and steps it back after the given time.
func (m *Machine) glitch(by, after time.Duration) {
	m.shift(by)
	m.ends, m.undo = m.now+after, -by
}

func (m *Machine) span(limit time.Duration) time.Duration {
	return span(m.rng, time.Millisecond, 5, limit)
}

// span returns a random duration up to limit. It first chooses an order of magnitude at random:
// that of size or, with a chance of 1-1/odds each time, a higher one.
func span(rng *rand.Rand, size time.Duration, odds int, limit time.Duration) time.Duration {
	for size < limit && rng.IntN(odds) > 0 {
		size *= 4
	}
	return time.Duration(rng.Int64N(int64(min(size, limit)))) + 1
}

// fault makes the clock misbehave, or corrects it. It returns a description.
func (m *Machine) fault() string {
	sign := time.Duration(1 - 2*m.rng.IntN(2))
	switch m.rng.IntN(9) {
	case 0: // a leap second, as kernels without smearing insert it
		m.shift(-time.Second)
		return "leap second"
	case 1:
		m.drift = m.rng.Int64N(1001) - 500
		return fmt.Sprintf("slew of %d ppm", m.drift)
	case 2:
		m.stopped = m.now + m.off
		m.frozen = m.now + m.span(tick.MaxStep)
		m.shown = append(m.shown, [2]time.Duration{m.stopped - m.frozen - m.gained, m.off - m.gained})
		m.steps++
		return fmt.Sprintf("freeze of %v", m.frozen-m.now)
	case 3:
		m.drift = 0
		m.shift(-m.off)
		return "corrected"
	case 4: // a step, perhaps in the middle of an operation
		m.armed, m.step = 1+m.rng.IntN(400), sign*m.span(10*time.Second)
		return fmt.Sprintf("pending step by %v", m.step)
	case 5:
		m.shift(sign * m.span(40*24*time.Hour))
		return "long step"
	case 6: // set back soon, or after nodes have believed it
		m.glitch(m.span(40*24*time.Hour), m.span(10*tick.Doubt))
		return fmt.Sprintf("ahead for %v", m.ends-m.now)
	}
	m.shift(sign * m.span(8*time.Second))
	return "step"
}
