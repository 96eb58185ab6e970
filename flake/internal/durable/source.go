package durable

import (
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Source is a generator whose mark is kept. A [tick.Generator] implements it.
type Source interface {
	// Now returns the clock, in milliseconds since 1970-01-01 UTC.
	Now() uint64
	// Begin restricts the source to ids later than last. It is called first.
	Begin(last uint64)
	// Last returns the last tick with used ids, and their number.
	Last() (milli uint64, used int)
	// Limit returns the time that no id may pass. Later calls may return another limit,
	// which must be raised again.
	Limit() *tick.Limit
	// Lower lowers the limit to milli, unless an id is later.
	Lower(milli uint64)
	// Doubted returns how far the machine's clock is ahead without being believed, or 0.
	Doubted() time.Duration
	// Behind returns how far the clock is behind the last id in ms, or 0.
	Behind() uint64
	// Close closes the source, and returns a time that no id is later than.
	Close() (last uint64)
}

// Stateful is a [Source] that can make ids again in a time it has already used, different from
// the earlier ones. For this it stores a few words with every mark.
type Stateful interface {
	Source
	// Restore sets the words of the last run, if there was one. It is called before Begin.
	Restore(words []uint64) error
	// Words returns the words to save, at most mark.MaxWords. Ids that depend on them may be
	// made once [Marker.Renew] has succeeded.
	Words() []uint64
	// Rewind is called after Restore if the clock is far behind last, the mark of the last
	// run: later ids must differ from those up to last. It returns a time that they must
	// be later than.
	Rewind(last uint64) (after uint64)
	// Bound reserves, before Begin, all time up to after for other nodes.
	Bound(after uint64)
}
