package tick

import (
	"sync/atomic"
	"time"
)

// ForwardClock returns a clock that follows the wall clock where that is set ahead,
// and where it is set back goes on at the pace of the monotonic one: for generators
// that keep nothing.
func ForwardClock() Clock {
	base := time.Now()
	return forwardClock(func() (wall, mono int64) {
		now := time.Now()
		return now.UnixNano(), int64(now.Sub(base))
	})
}

// forwardClock is ForwardClock of what read returns, in ns.
func forwardClock(read func() (wall, mono int64)) Clock {
	var ahead atomic.Int64 // wall minus monotonic time, the most that was seen
	return func() uint64 {
		wall, mono := read()
		seen := wall - mono
		for {
			most := ahead.Load()
			if seen <= most || ahead.CompareAndSwap(most, seen) {
				return uint64(max(mono+max(seen, most), 0)) / uint64(time.Millisecond)
			}
		}
	}
}
