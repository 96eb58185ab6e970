// Package ulid makes ULIDs (https://github.com/ulid/spec) that are never handed out
// twice, without asking any other machine, and strictly ascend.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|            48 bits            |       sequence, 16 bits       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            worker                             |
//	|            48 bits            |        random, 16 bits        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	sequence  of the generator within the millisecond, from 0
//	worker    the generator's
//	random    anew for each id
//	text      26 digits of 0123456789ABCDEFGHJKMNPQRSTVWXYZ, Crockford's base 32
//
// Ids compare as bytes, and so do their texts. The spec has 80 random bits after the
// time, which a monotonic generator counts up; here they are the last three fields.
//
// Start from [New], which needs nothing set up and promises less; from [Open], a
// generator whose ids stay unique across crashes, restarts and a clock set back, or
// from [NewGenerator], which remembers nothing once the process has ended; and from
// [ID]. The errors are those of package flake.
//
// Uniqueness rests on one rule the package cannot check: no two generators share a
// worker id. Against ULIDs whose 80 bits are random this gives up two things. Whoever
// sees an id sees its worker, which is a MAC address if you take one; and ids can be
// guessed, as 16 bits are soon tried: they are names, not secrets.
package ulid

import (
	"context"
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

var layout = halves.ULID

// Options configure a [Generator]. The zero value is valid.
type Options = flake.Options

// Generator hands out ids: each higher than the last, never ahead of its clock, at most
// 65,536 a millisecond, up to the year 6429. Any number of goroutines may use one; it takes
// no locks and allocates nothing. The zero value has no ids: Next and the like fail.
//
// Its methods are Next, NextN, Reserve, CatchUp, Close, Ready, Behind, Worker, PerTick,
// Waits, Last, Mark and LastSaved, as those of [flake.Generator].
type Generator = halves.Generator[ID]

// NewGenerator returns a generator that starts from nothing and keeps nothing: that
// no earlier one with this worker has handed out ids of this time is the caller's to
// know (or use [Open]). A worker above [flake.MaxWorker] is an error.
func NewGenerator(worker flake.Worker, o Options) (*Generator, error) {
	return halves.New[ID](layout, worker, o)
}

// Open returns a generator that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file and worker, and each is higher.
// Close it when done. It works and fails as [flake.Open] does.
func Open(ctx context.Context, path string, worker flake.Worker, o Options) (*Generator, error) {
	return halves.Open[ID](ctx, path, layout, worker, o)
}

// New returns an id, with nothing to set up: a worker id is made up at random when
// the process first calls it. Any number of goroutines may call it. Ids ascend
// as long as the process lives, also when the clock is set back: their time is ahead
// of it then. When the 65,536 of a millisecond are used New waits for the next one.
//
// That no other process, nor this one after a restart, makes the same id is as
// likely as that 47 random bits are not the same in two processes of one
// millisecond; nothing is kept on disk. After a restart with the clock set back,
// ids may be below those before. Where a system may rest on no chance, or on that
// order, there is [Open].
func New() ID { return fresh() }

var fresh = halves.Fresh[ID](layout)

// Run is ids that follow each other by sequence: First and the Count-1 after it, whose
// random bits are those of First.
type Run = flake.RunOf[ID]
