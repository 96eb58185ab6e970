package tick

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock returns the time in ms since 1970-01-01 UTC. It must be safe for concurrent use.
type Clock = func() uint64

// MilliOf returns t in ms since 1970. A time before 1970 counts as 1970, and a time after the
// latest that [time.UnixMilli] can represent counts as that latest time.
func MilliOf(t time.Time) uint64 {
	const last = math.MaxInt64 / 1000 // seconds
	switch seconds := t.Unix(); {
	case seconds < 0:
		return 0
	case seconds >= last:
		return math.MaxInt64
	}
	return uint64(t.UnixMilli())
}

// SystemClock returns a clock that follows the machine's wall clock. Reading it costs only about
// half as much as reading the wall clock, and the same as reading the monotonic clock.
//
// The clock returns monotonic time plus an offset. The offset changes only if the wall clock is
// stepped or the machine sleeps (the kernel slews both clocks alike). The first reading after
// each millisecond measures the offset again, so a step takes effect within a millisecond of
// running time, unless it goes far ahead: see [systemClock.believe].
//
// If the wall clock is never stepped, the readings never decrease and are never ahead of it:
// see [systemClock.measure].
func SystemClock() Clock { return newSystemClock().milli }

// MonotonicClock returns a clock that continues from the wall clock's current time with
// monotonic time. Later steps of the wall clock have no effect.
func MonotonicClock() Clock {
	base := time.Now()
	return MonotonicOf(base.UnixNano, func() int64 { return int64(time.Since(base)) })
}

// MonotonicOf is like [MonotonicClock], but reads the given clocks, in ns.
func MonotonicOf(wall, mono func() int64) Clock {
	start := wall() // read before mono, so that the clock is never ahead of wall
	start -= mono()
	return func() uint64 { return uint64(max(start+mono(), 0)) / uint64(time.Millisecond) }
}

// ClockOf is like [SystemClock], but reads the given simulated clocks, in ns. Every reading
// measures the offset.
func ClockOf(wall, mono func() int64) Clock {
	return startClock(&systemClock{wall: wall, mono: mono, slept: func() int64 { return 0 }}).milli
}

// ForwardClock is like [SystemClock], but follows the wall clock when it is set ahead, however
// far, and continues with monotonic time when it is set back. It is for generators that save
// nothing.
func ForwardClock() Clock { return newSystemClock().onlyForward() }

// onlyForward returns a ForwardClock that reads the same clocks as c, which must be new. It
// counts a time before 1970 as 1970.
func (c *systemClock) onlyForward() Clock {
	c.forward = true
	c.offset.Store(max(c.offset.Load(), 0))
	return c.milli
}

func newSystemClock() *systemClock {
	base := time.Now()
	return startClock(&systemClock{
		base: base, every: int64(time.Millisecond),
		wall:  func() int64 { return time.Now().UnixNano() },
		mono:  func() int64 { return int64(time.Since(base)) },
		slept: slept,
	})
}

func startClock(c *systemClock) *systemClock {
	wall, mono := c.wall(), c.mono()
	c.settle(wall - mono)
	c.offset.Store(c.settled)
	return c
}

type systemClock struct {
	base    time.Time    // origin of monotonic time
	offset  atomic.Int64 // believed wall time minus monotonic time, ns
	checked atomic.Int64 // monotonic time of the last measurement, ns

	every             int64 // how long an offset is valid, ns
	forward           bool  // whether the offset only rises, by any amount
	wall, mono, slept func() int64

	measuring sync.Mutex            // guards changes of the offset, and the fields below
	settled   int64                 // the offset from which jumps ahead are measured, ns
	sleep     int64                 // what slept returned when settled was set
	stray     atomic.Pointer[stray] // nil if the machine's offset is near the settled one
}

// stray is a measured offset that is far from the settled one.
type stray struct {
	offset int64
	since  int64         // monotonic time of the first measurement of it, ns
	ahead  time.Duration // how far it is ahead of the settled one; negative if behind
}

const (
	// MaxStep is the largest forward step that is believed immediately.
	MaxStep = 3 * time.Second

	// Doubt is how long a clock must stay ahead by more than MaxStep before it is believed.
	Doubt = time.Minute
)

func (c *systemClock) milli() uint64 {
	// The offset is loaded before the time is read, so that a reading is never later than the
	// moment at which it is returned.
	offset := c.offset.Load()
	mono := c.mono()
	if mono-c.checked.Load() >= c.every {
		wall := c.wall()
		after := c.mono()
		c.measure(mono, wall, after)
		offset, mono = c.offset.Load(), after
	}
	return uint64(max(offset+mono, 0)) / uint64(time.Millisecond)
}

// measure compares the offset with a reading of the wall clock that was taken between two
// readings of the monotonic clock, before and after. So the true offset is between wall-after
// and wall-before, however long the goroutine was suspended between the readings. If the old
// offset is in that range, it is kept, so a slow measurement never looks like a step. If it is
// lower, it is raised; if it is higher, the wall clock went back. In both cases the new offset
// is the lower end of the range, so the clock never runs ahead.
func (c *systemClock) measure(before, wall, after int64) {
	low, high := wall-after, wall-before
	if c.forward {
		high = math.MaxInt64
	}
	if old := c.offset.Load(); old < low || old > high || c.stray.Load() != nil {
		// If another goroutine is measuring, its measurement suffices for a millisecond.
		if !c.measuring.TryLock() {
			return
		}
		defer c.measuring.Unlock()
		if before < c.checked.Load() {
			return
		}
		if old = c.offset.Load(); low <= old && old <= high {
			low, high = old, old
		}
		c.offset.Store(c.believe(low, high, after))
	}
	c.checked.Store(before)
}

// believe returns the new offset. It is the measured offset, unless that is more than MaxStep
// ahead of the settled one. Then the settled offset stays, as if the clock had not been
// stepped, until the machine's clock has stayed ahead for [Doubt]. Otherwise ids could have a
// time far ahead; if the clock were then corrected, no more ids could be made until that time.
//
// An offset that is behind by more than MaxStep is believed immediately, but settled only when
// the clock has caught up, so that undoing the step does not count as a jump ahead. Time that
// the machine slept does not count as a jump ahead either.
func (c *systemClock) believe(low, high, mono int64) int64 {
	s := c.stray.Load()
	switch {
	case c.forward:
		return low
	case low-c.settled > int64(MaxStep):
		if low-c.settled-(c.slept()-c.sleep) <= int64(MaxStep) {
			break
		}
		if s == nil || max(low-s.offset, s.offset-low) > int64(MaxStep) {
			s = &stray{low, mono, time.Duration(low - c.settled)}
			c.stray.Store(s)
		}
		if mono-s.since < int64(Doubt) {
			return c.settled
		}
	case c.settled-high > int64(MaxStep):
		if s == nil || s.ahead > 0 {
			s = &stray{low, mono, time.Duration(low - c.settled)}
			c.stray.Store(s)
		}
		if low+mono < c.settled+s.since {
			return low
		}
	}
	c.settle(low)
	return low
}

func (c *systemClock) settle(offset int64) {
	c.settled, c.sleep = offset, c.slept()
	c.stray.Store(nil)
}

// doubted returns how far the machine's clock is ahead of the believed time, or 0.
func (c *systemClock) doubted() time.Duration {
	if s := c.stray.Load(); s != nil {
		return max(s.ahead, 0)
	}
	return 0
}
