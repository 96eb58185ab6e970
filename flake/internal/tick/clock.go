package tick

import (
	"math"
	"sync/atomic"
	"time"
)

// Clock gives the time in milliseconds since 1970-01-01 UTC. It is called by
// many goroutines at once.
type Clock = func() uint64

// MilliOf gives a time in ms since 1970. One before counts as 1970, one beyond
// what [time.UnixMilli] can take as the last that it can.
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

// SystemClock gives a clock that follows the machine's wall clock at the price
// of its monotonic one, which is half.
//
// It reads wall time as monotonic time plus an offset. The offset changes only
// when the wall clock is stepped or the machine sleeps (the kernel slews both
// clocks alike), and it is measured again by the first reading after each
// millisecond: a step shows within a millisecond of running time.
//
// Without steps its readings never decrease and are never ahead of the wall
// clock: see [systemClock.measure].
func SystemClock() Clock { return newSystemClock().milli }

func newSystemClock() *systemClock {
	c := &systemClock{base: time.Now()}
	c.offset.Store(math.MinInt64) // below any: the first reading measures it
	c.checked.Store(-recheck)
	return c
}

type systemClock struct {
	base    time.Time    // the origin of monotonic time
	offset  atomic.Int64 // wall minus monotonic time, ns
	checked atomic.Int64 // monotonic time of the last measurement, ns
}

// recheck is how long an offset is trusted.
const recheck = int64(time.Millisecond)

func (c *systemClock) milli() uint64 {
	// The offset is loaded before the time is read, so that a reading is never
	// later than the moment it is returned.
	offset := c.offset.Load()
	mono := int64(time.Since(c.base))
	if mono-c.checked.Load() >= recheck {
		wall := time.Now().UnixNano()
		after := int64(time.Since(c.base))
		c.measure(mono, wall, after)
		offset, mono = c.offset.Load(), after
	}
	return uint64(max(offset+mono, 0)) / uint64(time.Millisecond)
}

// measure compares the offset with a reading of the wall clock taken between
// two of the monotonic one. The true offset is then between wall-after and
// wall-before, however long the goroutine was held up in between: an offset
// within stays, so a slow measurement never looks like a step; one below is
// raised; one above means that the wall clock went back. Taking the lower end
// each time keeps the clock from running ahead.
func (c *systemClock) measure(before, wall, after int64) {
	old := c.offset.Load()
	if low, high := wall-after, wall-before; old < low || old > high {
		// If another goroutine was first, its measurement stands for a
		// millisecond at most.
		c.offset.CompareAndSwap(old, low)
	}
	c.checked.Store(before)
}
