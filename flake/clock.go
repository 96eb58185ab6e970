package flake

import "github.com/flake-go/flake/flake/internal/tick"

// Clock gives the time in milliseconds since 1970-01-01 UTC. It is called by
// many goroutines at once.
type Clock = func() uint64

// SystemClock gives a clock that follows the machine's wall clock at the price
// of its monotonic one, which is half. A step of the wall clock shows within a
// millisecond of running time. Without steps its readings never decrease and are
// never ahead of the wall clock.
func SystemClock() Clock { return tick.SystemClock() }
