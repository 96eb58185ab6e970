// Package flake makes unique 128-bit ids that sort by the time they were made,
// without asking any other machine. The ids are those of the Erlang server
// boundary/flake.
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
// All three are big-endian, so ids compare as bytes. The sequence is 0 for the
// first id of a millisecond.
//
// Start from [New], which needs no setup and promises less; from [Open], a
// generator whose ids stay unique across crashes, restarts and a clock set back, or
// from [NewGenerator], which keeps nothing after the process ends; and from [ID].
// Code that only needs ids takes a [Nexter]. Packages snowflake and sno have the
// same functions and methods for their formats, and return the errors of this one.
//
// Uniqueness depends on one rule that the package cannot check: no two generators
// share a worker id, which New chooses at random. No part of an id is random, so ids
// can be guessed; they are names, not secrets.
package flake

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// ID is one id: 8 bytes of milliseconds since 1970-01-01 UTC, 6 of [Worker]
// and 2 of sequence, each big-endian. Any 16 bytes are an ID; the zero value is
// the lowest.
type ID [16]byte

// Make returns the id of milliseconds since 1970-01-01 UTC, the low 48 bits of
// worker, and the sequence. It is for tests and tools; new ids come from a [Generator].
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

// set writes in place, which takes an eighth of the time of copying an array.
func (id *ID) set(hi, lo uint64) {
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
}

// Milli is the id's time in milliseconds since 1970-01-01 UTC.
func (id ID) Milli() uint64 { return binary.BigEndian.Uint64(id[:8]) }

// Time is the id's time in UTC, to the millisecond, or the last that
// [time.UnixMilli] can represent if that is earlier.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(min(id.Milli(), math.MaxInt64))).UTC()
}

// Worker is the worker that made the id.
func (id ID) Worker() Worker { return Worker(binary.BigEndian.Uint64(id[8:]) >> 16) }

// Sequence is the id's number within its millisecond, from 0.
func (id ID) Sequence() uint16 { return binary.BigEndian.Uint16(id[14:]) }

// Plus returns the id that is i after this one in a [Run].
func (id ID) Plus(i int) ID {
	hi, lo := id.words()
	return fromWords(hi, lo+uint64(i))
}

// IsZero reports whether id is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other:
// by time, then worker, then sequence. It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// Notional returns the id of a time with worker and sequence 0, the lowest that
// any worker can make in that millisecond: a bound for scans over ids. A time
// before 1970 counts as 1970, and one after the last that [ID.Time] can return counts
// as that last one.
func Notional(t time.Time) ID { return Make(tick.MilliOf(t), 0, 0) }

// Span returns the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. If last is before first,
// lowest is above highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), Make(tick.MilliOf(last), MaxWorker, 1<<16-1)
}
