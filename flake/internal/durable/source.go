package durable

import (
	"context"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Source is a generator whose mark this package keeps. A [tick.Generator] implements it.
type Source interface {
	// Now returns the clock's time, in milliseconds since 1970-01-01 UTC.
	Now() uint64
	// Ready returns nil if an id can be made now, or the error of a call for one.
	Ready() error
	// Begin restricts the source to ids later than last. It is called before any id is made.
	Begin(last uint64)
	// Last returns the last tick in which ids were used, and the number of ids used in it.
	Last() (milli uint64, used int)
	// Limit returns the limit of ids. A later call may return a different limit, which must then
	// be raised as well.
	Limit() *tick.Limit
	// Lower lowers the limit to milli, unless an id is later.
	Lower(milli uint64)
	// Halt ends ids at once, for good: a call for one asks for a higher limit. It is called if
	// another process may use the file, after which the limit is never raised.
	Halt()
	// Doubted returns how far the machine's clock is ahead without being believed, or 0.
	Doubted() time.Duration
	// Behind returns how many milliseconds the clock is behind the last id, or 0.
	Behind() uint64
	// Close closes the source and returns an upper bound on the times of its ids.
	Close() (last uint64)
}

// Stateful is a [Source] that can use the same time again, for ids that differ from its earlier
// ids. For this purpose it stores a few words with every mark.
type Stateful interface {
	Source
	// Restore sets the words of the last run, if there was one. It is called before Begin.
	Restore(words []uint64) error
	// Words returns the words to save, at most mark.MaxWords. The source may make ids that
	// depend on them once [Marker.Renew] has succeeded.
	Words() []uint64
	// Rewind is called after Restore if the clock is far behind last, the mark of the last
	// run. New ids must then differ from those up to last. Rewind returns an exclusive lower
	// bound on the times of the new ids.
	Rewind(last uint64) (after uint64)
	// Exclude reserves all times up to after for other nodes. It is called before Begin.
	Exclude(after uint64)
}

// Bound is a limit on ids that does not come from the file, such as a claim from package workers.
// The file's mark never passes it.
type Bound interface {
	// After returns an exclusive lower bound on the times of ids.
	After() uint64
	// Milli returns the latest time an id may have. It only rises.
	Milli() uint64
	// Extend raises Milli to at least the argument. If ctx is done first, it returns ctx's
	// cause.
	Extend(ctx context.Context, milli uint64) error
}
