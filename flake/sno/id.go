// Package sno makes 80-bit ids that sort by creation time and carry a byte from the caller.
// Ids can still be made after the clock is set back. Their bytes and text are those of
// github.com/muyo/sno v1.2.1.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   ticks of 4 ms since 2010-01-01 UTC, up to 2079-09-07 UTC    |
//	+           39 bits           +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|             |T|   metabyte    |           partition           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           sequence            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	T           the tick-tock bit: flips whenever the clock is set back
//	metabyte    set by the program: see [ID.WithMeta]
//	partition   identifies the generator
//	sequence    the id's number within the 4 ms, from the generator's lower bound
//	text        16 digits from 23456789abcdefghijklmnopqrstuvwx
//	ids         65,536 in 4 ms per partition, or 16,384,000 per second; then calls wait
//
// All fields are big-endian, so ids sort by time, as bytes and as text.
//
// When the clock is set back for the first time, the generator continues immediately at the
// earlier time, with T flipped. If the clock is set back again, to a time for which both values
// of T were used, no ids can be made until that time has passed: see [Generator.CatchUp].
//
// Where muyo/sno returns a meaningless id, this package returns an error: for a clock or time
// outside the range of ids, and for a string that is not an id. Where muyo/sno waits for a clock
// that is behind, this package also returns an error. muyo/sno treats the zero value as a
// missing id, and as null in JSON; here it is an id like any other. [Epoch] and [Overflow] use
// different units from muyo/sno's.
//
// Start with [Open], for a generator whose ids stay unique across crashes, restarts and a
// clock set back; [New], which needs no setup but guarantees little; [NewGenerator], which
// saves nothing, so the program must save its [Snapshot]; and [ID]. The errors are those of
// package flake, [BoundsError] and [ErrPartitionsExhausted].
//
// Uniqueness depends on one rule that the package cannot check: no two generators share both a
// partition and a sequence number. Ids can be guessed; they are names, not secrets.
package sno

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// ID is one id. Any 10 bytes are an ID; the zero value is the lowest.
type ID [SizeBinary]byte

var maxID = ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

const (
	SizeBinary  = 10 // bytes in an id
	SizeEncoded = 16 // digits in its text

	MaxPartition = 1<<16 - 1 // as a number
	MaxSequence  = 1<<16 - 1

	// Epoch is the time from which ids count, 2010-01-01 UTC, in milliseconds since 1970;
	// muyo/sno's Epoch is in seconds.
	Epoch = 1262304000_000

	// Unit is the length of a tick, the step in which ids count time: muyo/sno's TimeUnit.
	Unit = 4 * time.Millisecond

	// MaxMilli is the latest time of an id in milliseconds since 1970, in 2079.
	MaxMilli = lastTick + unit - 1

	unit     = 4
	maxUnits = 1<<39 - 1
	lastTick = Epoch + maxUnits*unit
)

// Parts are the parts of an id.
type Parts struct {
	Milli     uint64 // milliseconds since 1970-01-01 UTC; Make rounds down to a multiple of 4
	TickTock  bool   // whether the tick-tock bit is set
	Meta      byte
	Partition Partition
	Sequence  uint16
}

// Make returns the id with the parts p. A time before [Epoch] or after [MaxMilli] is an error.
// A [Generator] makes new ids.
func Make(p Parts) (ID, error) {
	if p.Milli < Epoch || p.Milli > MaxMilli {
		return ID{}, fmt.Errorf("flake: time %d ms since 1970 is out of range: must be %d to %d",
			p.Milli, int64(Epoch), int64(MaxMilli))
	}
	rest := uint64(p.Partition.AsUint16())
	if p.TickTock {
		rest |= 1 << 24
	}
	return join(p.Milli, rest|uint64(p.Meta)<<16, p.Sequence), nil
}

// set writes in place, which takes less time than copying an array. rest holds the bits
// between time and sequence.
func (id *ID) set(milli, rest uint64, sequence uint16) {
	binary.BigEndian.PutUint64(id[:8], (milli-Epoch)/unit<<25|rest)
	binary.BigEndian.PutUint16(id[8:], sequence)
}

func join(milli, rest uint64, sequence uint16) (id ID) {
	id.set(milli, rest, sequence)
	return id
}

// Decompose returns the parts of the id.
func (id ID) Decompose() Parts {
	return Parts{id.Milli(), id[4]&1 != 0, id.Meta(), id.Partition(), id.Sequence()}
}

// Milli returns the id's time in milliseconds since 1970-01-01 UTC, a multiple of 4.
func (id ID) Milli() uint64 { return Epoch + binary.BigEndian.Uint64(id[:8])>>25*unit }

// Time returns the id's time in UTC.
func (id ID) Time() time.Time { return time.UnixMilli(int64(id.Milli())).UTC() }

// Timestamp returns the id's time in nanoseconds since 1970-01-01 UTC.
func (id ID) Timestamp() int64 { return int64(id.Milli()) * int64(time.Millisecond) }

// Meta returns the metabyte, which the program sets: see [ID.WithMeta].
func (id ID) Meta() byte { return id[5] }

// WithMeta returns the id with its metabyte set to meta. That id is still unique: no other id
// has the same time, tick-tock bit, partition and sequence, whatever its metabyte.
func (id ID) WithMeta(meta byte) ID {
	id[5] = meta
	return id
}

// words returns the id as the two halves of a 128-bit number.
func (id ID) words() (hi, lo uint64) {
	return uint64(binary.BigEndian.Uint16(id[:2])), binary.BigEndian.Uint64(id[2:])
}

// Partition returns the partition of the generator that made the id.
func (id ID) Partition() Partition { return Partition{id[6], id[7]} }

// Sequence returns the id's number within its tick and partition.
func (id ID) Sequence() uint16 { return binary.BigEndian.Uint16(id[8:]) }

// Plus returns the id that is i places after this one in a [Run].
func (id ID) Plus(i int) ID {
	binary.BigEndian.PutUint16(id[8:], id.Sequence()+uint16(i))
	return id
}

// IsZero reports whether id is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other.
// It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// Notional returns the lowest id that can have the time t: a bound for scans over ids. A time
// before [Epoch] counts as Epoch, and a time after [MaxMilli] counts as MaxMilli.
func Notional(t time.Time) ID { return join(clamp(t), 0, 0) }

// Span returns the lowest and highest ids from the tick of first to the tick of last, both
// included, for `WHERE id BETWEEN $1 AND $2`. If last is before first, lowest is above highest,
// and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return Notional(first), join(clamp(last), 1<<25-1, 1<<16-1)
}

func clamp(t time.Time) uint64 { return min(max(tick.MilliOf(t), Epoch), MaxMilli) }

// Partition identifies a generator.
type Partition [2]byte

// AsUint16 returns the partition as a big-endian number.
func (p Partition) AsUint16() uint16 { return uint16(p[0])<<8 | uint16(p[1]) }

// PutUint16 sets the partition to a big-endian number.
func (p *Partition) PutUint16(n uint16) { *p = Partition{byte(n >> 8), byte(n)} }

// ErrPartitionsExhausted means that generators without a configured partition have used all
// 65,536 partitions in this process.
var ErrPartitionsExhausted = errors.New("flake: all 65536 partitions are in use in this process; set partitions")

// A pool returns each partition once, in ascending order from a random first one.
type pool struct {
	seed  uint16
	given atomic.Uint64 // number of calls to next, including those that failed
}

var partitions = pool{seed: uint16(rand.Uint32())}

func (p *pool) next() (partition Partition, err error) {
	n := p.given.Add(1) - 1
	if n > MaxPartition {
		return partition, ErrPartitionsExhausted
	}
	partition.PutUint16(p.seed + uint16(n))
	return partition, nil
}
