package durable

import (
	"log/slog"
	"time"
)

const (
	// Window is how far ahead of the clock the mark is set. After a crash the next process
	// waits for at most that long, and for that long ids can be made while the file cannot
	// be written.
	Window = 3 * time.Second

	// DefaultDowntime is the original's allowable_downtime, 30 days.
	DefaultDowntime = 30 * 24 * time.Hour

	renewal = time.Second // the time between moves of the mark

	// Patience is how long a call waits for a save when the clock has passed the mark:
	// there were no calls for a while, the machine slept, or the clock was set ahead.
	Patience = time.Second

	// linger is the number of beats without ids after which marks no longer move.
	linger = 60

	// idle is the maximum age of a mark while there are no calls, or a hundredth of the
	// allowable downtime if that is less. The mark also shows when the node last ran, and
	// the file must never look old to programs that delete old files.
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
