package flake

import "github.com/flake-go/flake/flake/internal/tick"

// SystemClock returns a clock that follows the machine's wall clock at the price
// of its monotonic one, which is half. A step of the wall clock shows within a
// millisecond of running time. Without steps its readings never decrease and are
// never ahead of the wall clock.
//
// A step ahead by more than 3 s shows when the wall clock has stayed there for a
// minute; until then time goes on as if there had been none. After ids of a time
// far ahead there would be none until it has come. That the machine slept is no
// step, where that is known: on Linux.
func SystemClock() func() uint64 { return tick.SystemClock() }

// MonotonicClock returns a clock that reads the machine's wall clock once, now, and goes
// on by monotonic time: no later step of the wall clock shows, so ids neither end nor
// jump when it is set.
//
// The time of ids then differs from the wall clock's by all that this was set by, and on
// Linux by all that the machine has slept, until the program makes another. A generator
// that is opened next may find its mark ahead of the clock, and wait or refuse to start,
// as [Open] says: no id comes twice.
func MonotonicClock() func() uint64 { return tick.MonotonicClock() }
