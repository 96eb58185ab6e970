package ulid

import (
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/halves"
)

// ID is one id. Any 16 bytes are one; the zero value is the lowest.
type ID [16]byte

// MaxMilli is the last millisecond since 1970 that ids have a time for, in the
// year 10889.
const MaxMilli = halves.MaxMilli

// Make puts an id together from milliseconds since 1970-01-01 UTC, worker, sequence
// and random bits. A time above MaxMilli and a worker above [flake.MaxWorker] are
// errors. A [Generator] is what makes new ones.
func Make(milli uint64, worker flake.Worker, sequence, random uint16) (ID, error) {
	return layout.Make(milli, worker, sequence, random)
}

// Milli is the id's time in milliseconds since 1970-01-01 UTC.
func (id ID) Milli() uint64 { return halves.Milli(id) }

// Time is the id's time in UTC, to the millisecond.
func (id ID) Time() time.Time { return halves.Time(id) }

// Worker is the worker that made the id. It, sequence and random bits are no more than
// random ones in ids of others.
func (id ID) Worker() flake.Worker { return layout.Worker(id) }

// Sequence is the id's number within its millisecond, from 0.
func (id ID) Sequence() uint16 { return layout.SequenceOf(id) }

// Random is the id's random bits.
func (id ID) Random() uint16 { return layout.RandomOf(id) }

// Plus returns the id that is i after this one in a [Run].
func (id ID) Plus(i int) ID { return halves.Plus(id, i) }

// IsZero tells whether it is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other:
// by time, then sequence, then worker. It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return flake.ID(id).Compare(flake.ID(other)) }

// Notional returns the lowest id of a time that anybody can make: a bound for scans
// over ids. Times before 1970 count as 1970, and those beyond [MaxMilli] as that.
func Notional(t time.Time) ID { return layout.Lowest(t) }

// Span returns the lowest and the highest id of the milliseconds from first to
// last, both included: `WHERE id BETWEEN $1 AND $2`. With last before first
// the lowest is above the highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return layout.Lowest(first), layout.Highest(last)
}
