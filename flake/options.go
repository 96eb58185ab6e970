package flake

import (
	"log/slog"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
)

// Options configure a [Generator]. The zero value is valid.
type Options struct {
	// Clock returns the time in milliseconds since 1970-01-01 UTC. Many goroutines
	// call it at once. nil means [SystemClock].
	Clock func() uint64

	// AllowableDowntime, of [Open] alone, is how long ids may not have been made
	// before a start is refused with [ErrClockAdvanced], for the clock may be wrong.
	// 0 means 30 days; below 0 is an error.
	AllowableDowntime time.Duration

	// Logger, of [Open] alone, is told of a new file, a wait, and trouble with the
	// file and its end; nil means nobody is.
	Logger *slog.Logger

	// Saved, of [Open] alone, is told how long each attempt to write the file took;
	// nil means nobody is.
	Saved func(time.Duration)

	// Marks, of [Open] alone, is the file of [OpenMarks] that keeps the mark beside
	// others, under path as its name, without space or slash; nil means a file of its own.
	Marks *Marks

	// Bound, of [Open] alone, is a further limit on the ids, which begin after it and
	// end at it, such as a claim of package workers; nil means that there is none.
	Bound Bound
}

// Bound is a limit on ids that comes from elsewhere than the file.
type Bound = durable.Bound
