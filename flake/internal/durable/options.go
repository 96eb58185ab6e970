package durable

import (
	"log/slog"
	"time"
)

const (
	// Window is how far ahead of the clock the mark is set. It is also the longest time that
	// the next process waits after a crash, and the time for which ids can be made while the
	// file cannot be written.
	Window = 3 * time.Second

	// DefaultDowntime is the original's allowable_downtime, 30 days.
	DefaultDowntime = 30 * 24 * time.Hour

	renewal = time.Second // the time between moves of the mark

	// Patience is the longest time that a call waits for a save when the clock has passed the
	// mark. That happens if there were no calls for a while, the machine slept, or the clock
	// was set ahead.
	Patience = time.Second

	// linger is the number of beats without ids after which marks no longer move.
	linger = 60

	// The maximum age of a mark while there are no calls is idle, or a hundredth of the
	// allowable downtime if that is less. There is a maximum because the mark also shows when
	// the node last ran, and because programs may delete files that look old.
	idle = time.Hour

	window = uint64(Window / time.Millisecond)
)

// Options are documented at flake.Options. The zero value is valid.
type Options struct {
	Clock             func() uint64 // not used here: the source has a clock
	AllowableDowntime time.Duration
	Logger            *slog.Logger
	Saved             func(time.Duration)
	Marks             *Marks
	Bound             Bound
}
