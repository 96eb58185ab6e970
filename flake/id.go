// Package flake makes unique 128-bit ids that sort by creation time, without contacting any
// other machine. They are the ids of the Erlang server boundary/flake.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|                            64 bits                            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            worker                             |
//	|            48 bits            |       sequence, 16 bits       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// All three fields are big-endian, so ids compared as bytes sort by time. The sequence is 0 for
// the first id of a millisecond.
//
// Start with [New], which needs no setup but guarantees less; [Open], for a generator whose
// ids stay unique across crashes, restarts and a clock set back; [NewGenerator], which saves
// nothing; and [ID]. Code that only needs ids should take a [Nexter]. Packages snowflake and
// sno have the same functions and methods for their formats, and return the errors of this
// package.
//
// Uniqueness depends on one rule that the package cannot check: no two generators share a
// worker id. New chooses its worker id at random. No part of an id is random, so ids can be
// guessed; they are names, not secrets.
package flake

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// ID is one id: 8 bytes of milliseconds since 1970-01-01 UTC, 6 bytes of [Worker] and 2 bytes
// of sequence, each big-endian. Any 16 bytes are an ID; the zero value is the lowest.
type ID [16]byte

// Make returns the id with the given time, in milliseconds since 1970-01-01 UTC, the low 48 bits of
// worker, and a sequence. It is for tests and tools; a [Generator] makes new ids.
func Make(milli uint64, worker Worker, sequence uint16) ID {
	return fromWords(milli, uint64(worker)<<16|uint64(sequence))
}

// words returns the id as the two halves of a 128-bit number.
func (id ID) words() (hi, lo uint64) {
	return binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
}

func fromWords(hi, lo uint64) ID {
	var id ID
	id.set(hi, lo)
	return id
}

// set writes in place, which takes an eighth of the time that copying an array takes.
func (id *ID) set(hi, lo uint64) {
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
}

// Milli returns the id's time in milliseconds since 1970-01-01 UTC.
func (id ID) Milli() uint64 { return binary.BigEndian.Uint64(id[:8]) }

// Time returns the id's time in UTC, to the millisecond, or the latest time that
// [time.UnixMilli] can represent if that is earlier.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(min(id.Milli(), math.MaxInt64))).UTC()
}

// Worker returns the worker that made the id.
func (id ID) Worker() Worker { return Worker(binary.BigEndian.Uint64(id[8:]) >> 16) }

// Sequence returns the id's number within its millisecond, starting at 0.
func (id ID) Sequence() uint16 { return binary.BigEndian.Uint16(id[14:]) }

// Plus returns the id that is i places after this one in a [Run].
func (id ID) Plus(i int) ID {
	hi, lo := id.words()
	return fromWords(hi, lo+uint64(i))
}

// IsZero reports whether id is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other:
// by time, then worker, then sequence. It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// Notional returns the id with the time t, worker 0 and sequence 0: the lowest id that any
// worker can make in that millisecond, as a bound for scans over ids. A time before 1970 counts
// as 1970, and a time after the latest that [ID.Time] can return counts as that time.
func Notional(t time.Time) ID { return Make(tick.MilliOf(t), 0, 0) }

// Span returns the lowest and highest ids from the millisecond of first to the millisecond of
// last, both included, for `WHERE id BETWEEN $1 AND $2`. If last is before first, lowest is
// above highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), Make(tick.MilliOf(last), MaxWorker, 1<<16-1)
}
