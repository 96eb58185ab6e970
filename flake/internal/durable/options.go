package durable

import (
	"log/slog"
	"time"
)

const (
	// Window is how far ahead of the clock the mark is set. So it is the longest wait of a
	// start after a crash, and the longest that ids continue while the file cannot be
	// written.
	Window = 3 * time.Second

	// DefaultDowntime is the original's allowable_downtime, 30 days.
	DefaultDowntime = 30 * 24 * time.Hour

	renewal = time.Second // how often the mark is moved

	// Patience is how long a call waits for a save if the clock has passed the mark: there
	// were no calls for a while, the machine slept, or the clock was set.
	Patience = time.Second

	// linger is the number of beats without ids after which marks no longer move.
	linger = 60

	// idle is the maximum age of a mark without calls; a hundredth of the allowable downtime
	// if that is less. The mark also shows when the node last ran, and programs that delete
	// old files must find the file young.
	idle = time.Hour

	window = uint64(Window / time.Millisecond)
)

// Options are documented by flake.Options. The zero value is valid.
type Options struct {
	Clock             func() uint64 // not used: the source has a clock
	AllowableDowntime time.Duration
	Logger            *slog.Logger
	Saved             func(time.Duration)
	Marks             *Marks
	Bound             Bound
}
