// Package flake makes 128-bit ids that sort by the time they were made and
// that are never handed out twice, without asking any other machine. The ids
// are those of the Erlang server boundary/flake.
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
// Start from [New], which needs nothing set up and promises less; from [Open], a
// generator whose ids stay unique across crashes, restarts and a clock set back, or
// from [NewGenerator], which remembers nothing once the process has ended; and from
// [ID]. What only needs ids asks for a [Nexter]. Packages snowflake and sno have the
// same functions and methods for ids of their formats, and the errors of this one.
//
// Uniqueness rests on one rule the package cannot check: no two generators
// share a worker id, which New makes up. The package makes no randomness part of
// each id, so ids can be guessed; they are names, not secrets.
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

// Make puts an id together from milliseconds since 1970-01-01 UTC, the low 48
// bits of worker, and the sequence. It takes ids apart and together in tests
// and tools; a [Generator] is what makes new ones.
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

// set writes in place, which costs an eighth of copying an array there.
func (id *ID) set(hi, lo uint64) {
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
}

// Milli is the id's time in milliseconds since 1970-01-01 UTC.
func (id ID) Milli() uint64 { return binary.BigEndian.Uint64(id[:8]) }

// Time is the id's time in UTC, to the millisecond. A time beyond what
// [time.UnixMilli] can take counts as the last that it can.
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

// IsZero tells whether it is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other:
// by time, then worker, then sequence. It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// Notional returns the id of a time with worker and sequence 0, the lowest that
// any worker can make in its millisecond: a bound for scans over ids. Times
// before 1970 count as 1970, and those beyond what [ID.Time] returns as the last
// that it does.
func Notional(t time.Time) ID { return Make(tick.MilliOf(t), 0, 0) }

// Span returns the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. With last before first
// the lowest is above the highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), Make(tick.MilliOf(last), MaxWorker, 1<<16-1)
}
