package durable

import (
	"log/slog"
	"time"
)

const (
	// Window is how far ahead of the clock the mark is set, and so the longest
	// that a start after a crash waits, and the longest that ids go on while
	// the file cannot be written.
	Window = 3 * time.Second

	// DefaultDowntime is the original's allowable_downtime, 30 days.
	DefaultDowntime = 30 * 24 * time.Hour

	renewal = time.Second // how often the mark is moved

	// Patience is how long a call waits for the mark to be moved past a clock
	// that went beyond it: nobody had asked for ids for a while, the machine slept,
	// or the clock was set.
	Patience = time.Second

	// The mark is moved until there have been no ids for so many beats.
	linger = 60

	// While nobody asks, the mark is moved once it is so old, or a hundredth of the
	// allowable downtime: it also tells how long nothing has run, and who cleans up
	// old files is to find a young one.
	idle = time.Hour

	window = uint64(Window / time.Millisecond)
)

// Options are those of flake.Options, which documents them. The zero value is valid.
type Options struct {
	Clock             func() uint64 // not used here: the source has one
	AllowableDowntime time.Duration
	Logger            *slog.Logger
	Saved             func(time.Duration)
	Marks             *Marks
	Bound             Bound
}
