package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Machine is the clock and the disk that a node runs on.
type Machine struct {
	Disk *Disk

	rng    *rand.Rand
	now    time.Duration // true time since 1970
	off    time.Duration // the clock's error
	drift  int64         // what it gains, in parts per million
	frozen time.Duration // until when (true time) the clock stands still
	stands time.Duration // at what time it does
	armed  int           // clock reads until a step; 0: none
	step   time.Duration // that step
	steps  int           // steps so far
	hurry  bool          // ids are made faster than there are any

	// preempt is run after the clock was read and before the reader gets to
	// know: the others that run while it is held up.
	preempt func()
	trace   func(format string, args ...any)
}

func newMachine(rng *rand.Rand) *Machine {
	m := &Machine{rng: rng, now: 1_700_000_000 * time.Second, trace: func(string, ...any) {}}
	m.now += time.Duration(rng.Int64N(int64(time.Hour)))
	m.Disk = newDisk(m)
	return m
}

// Now gives the true time since 1970, which no node can know.
func (m *Machine) Now() time.Duration { return m.now }

// Clock reads the clock, in milliseconds since 1970, which takes a moment.
func (m *Machine) Clock() uint64 {
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
	milli := m.milli()
	if m.preempt != nil && m.rng.IntN(32) == 0 {
		m.preempt()
	}
	return milli
}

// Undisturbed runs f without others in between.
func (m *Machine) Undisturbed(f func()) {
	others := m.preempt
	m.preempt = nil
	defer func() { m.preempt = others }()
	f()
}

// Sleep lets time pass.
func (m *Machine) Sleep(_ context.Context, d time.Duration) error {
	m.pass(d + time.Duration(m.rng.IntN(int(time.Millisecond))))
	return nil
}

func (m *Machine) milli() uint64 {
	t := m.now + m.off
	if m.now < m.frozen {
		t = m.stands
	}
	return uint64(max(t, 0) / time.Millisecond)
}

// pass lets true time pass, and the clock drift.
func (m *Machine) pass(d time.Duration) {
	m.now += d
	m.off += time.Duration(int64(d) / 1_000_000 * m.drift)
}

// shift steps the clock.
func (m *Machine) shift(by time.Duration) {
	m.trace("clock steps by %v", by)
	m.off += by
	m.frozen = 0
	m.steps++
}

// span draws a duration whose order of size is drawn first, from a millisecond
// to most.
func (m *Machine) span(most time.Duration) time.Duration {
	size := time.Millisecond
	for size < most && m.rng.IntN(5) > 0 {
		size *= 4
	}
	return time.Duration(m.rng.Int64N(int64(min(size, most)))) + 1
}

// fault does something to the clock and tells what.
func (m *Machine) fault() string {
	sign := time.Duration(1 - 2*m.rng.IntN(2))
	switch m.rng.IntN(8) {
	case 0: // a leap second, as kernels without smearing insert it
		m.shift(-time.Second)
		return "leap second"
	case 1:
		m.drift = m.rng.Int64N(1001) - 500
		return fmt.Sprintf("slew of %d ppm", m.drift)
	case 2:
		m.stands = m.now + m.off
		m.frozen = m.now + m.span(5*time.Second)
		m.steps++
		return fmt.Sprintf("freeze of %v", m.frozen-m.now)
	case 3:
		m.drift = 0
		m.shift(-m.off)
		return "set right"
	case 4: // the step comes in the middle of something
		m.armed, m.step = 1+m.rng.IntN(400), sign*m.span(10*time.Second)
		return fmt.Sprintf("step by %v to come", m.step)
	case 5:
		m.shift(sign * m.span(40*24*time.Hour))
		return "long step"
	}
	m.shift(sign * m.span(8*time.Second))
	return "step"
}
