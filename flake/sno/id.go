package sno

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// ID is one id. Any 10 bytes are one; the zero value is the lowest.
type ID [SizeBinary]byte

// maxID is the highest id.
var maxID = ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

const (
	SizeBinary  = 10 // the bytes of an id
	SizeEncoded = 16 // the digits of its own text

	MaxPartition = 1<<16 - 1 // as a number
	MaxSequence  = 1<<16 - 1

	// Epoch is when the time of ids begins, 2010-01-01 UTC, in milliseconds
	// since 1970; the peer's is in seconds.
	Epoch = 1262304000_000

	// Unit is how long a tick is, the steps of the time of ids: the peer's
	// TimeUnit.
	Unit = 4 * time.Millisecond

	// MaxMilli is the last millisecond since 1970 that ids have a time for, in
	// 2079.
	MaxMilli = lastTick + unit - 1

	unit     = 4
	maxUnits = 1<<39 - 1
	lastTick = Epoch + maxUnits*unit
)

// Parts are what an id is put together from.
type Parts struct {
	Milli     uint64 // milliseconds since 1970-01-01 UTC, of an id a multiple of 4
	TickTock  bool   // whether the tick-tock bit is set
	Meta      byte
	Partition Partition
	Sequence  uint16
}

// Make puts an id together. A time before [Epoch] or after [MaxMilli] is an
// error. A [Generator] is what makes new ones.
func Make(p Parts) (ID, error) {
	if p.Milli < Epoch || p.Milli > MaxMilli {
		return ID{}, fmt.Errorf("flake: %d ms since 1970 is no time of an id, which is from %d to %d", p.Milli, int64(Epoch), int64(MaxMilli))
	}
	rest := uint64(p.Partition.AsUint16())
	if p.TickTock {
		rest |= 1 << 24
	}
	return join(p.Milli, rest|uint64(p.Meta)<<16, p.Sequence), nil
}

// set takes what is between time and sequence as it is in an id. It writes in
// place, which is cheaper than to copy an array there.
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

// Milli is the id's time in milliseconds since 1970-01-01 UTC, a multiple of 4.
func (id ID) Milli() uint64 { return Epoch + binary.BigEndian.Uint64(id[:8])>>25*unit }

// Time is the id's time in UTC.
func (id ID) Time() time.Time { return time.UnixMilli(int64(id.Milli())).UTC() }

// Timestamp is the id's time in nanoseconds since 1970-01-01 UTC.
func (id ID) Timestamp() int64 { return int64(id.Milli()) * int64(time.Millisecond) }

// Meta is the byte that is the program's own: see [ID.WithMeta].
func (id ID) Meta() byte { return id[5] }

// WithMeta is the id with another metabyte. It is as unique as it was: no other id of
// its time and partition has its sequence, whatever the metabyte.
func (id ID) WithMeta(meta byte) ID {
	id[5] = meta
	return id
}

// words returns the id as the two halves of a number.
func (id ID) words() (hi, lo uint64) {
	return uint64(binary.BigEndian.Uint16(id[:2])), binary.BigEndian.Uint64(id[2:])
}

// Partition is that of the generator.
func (id ID) Partition() Partition { return Partition{id[6], id[7]} }

// Sequence is the id's number within its time and partition.
func (id ID) Sequence() uint16 { return binary.BigEndian.Uint16(id[8:]) }

// Plus returns the id that is i after this one in a [Run].
func (id ID) Plus(i int) ID {
	binary.BigEndian.PutUint16(id[8:], id.Sequence()+uint16(i))
	return id
}

// IsZero tells whether it is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other.
// It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }
