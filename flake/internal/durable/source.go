package durable

import (
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Source is the generator whose time is kept. A [tick.Generator] is one.
type Source interface {
	// Now reads the clock, in milliseconds since 1970-01-01 UTC.
	Now() uint64
	// Begin has only ids made that are later than last; it comes first.
	Begin(last uint64)
	// Last gives the last tick of which ids count as made, and how many.
	Last() (milli uint64, used int)
	// Limit is the time that no id is made past. It may give another one later,
	// which has to be raised anew.
	Limit() *tick.Limit
	// Lower takes the limit back to milli, if it is above and no id is later.
	Lower(milli uint64)
	// Doubted tells how far the machine's clock has gone ahead without being
	// believed; 0: it has not.
	Doubted() time.Duration
	// Behind tells in how many ms there can be ids again; 0: the clock is not
	// behind.
	Behind() uint64
	// Close ends it, and gives a time that no id was later than.
	Close() (last uint64)
}

// Stateful is a [Source] whose ids do not only ascend, and that has more to keep than
// the time: a few words, which stand in the file beside every mark.
type Stateful interface {
	Source
	// Restore is given the words of the last run, if there was one, before Begin.
	Restore(words []uint64) error
	// Words gives those to save, at most mark.MaxWords. An id that depends on
	// them may be made once [Keeper.Renew] has come back without an error.
	Words() []uint64
	// Turn comes after Restore, if the clock is far behind last, the last run's
	// mark: the ids to come are told from those up to last. It gives a time that
	// they have to be later than.
	Turn(last uint64) (after uint64)
	// Bound tells, before Begin, that all time up to after is others' for good.
	Bound(after uint64)
}
