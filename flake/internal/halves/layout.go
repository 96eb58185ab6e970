// Package halves makes ids of 16 bytes whose first half is time and sequence, and
// whose second is the worker and random bits: UUIDs of version 7, and ULIDs.
//
//	 0                        48                64 - Sequence      64
//	+-------------------------+------------------+----------------+
//	|       milliseconds      |     of High      |    sequence    |
//	+---------+---------------+------------------+----------------+
//	|  of Low |               worker, 48         |     random     |
//	+---------+----------------------------------+----------------+
//	 64                                           128 - Random     128
//
// The id after another, of one generator and millisecond, has a first half that is
// higher by 1. The random bits make an id harder to guess; it is unique without them.
package halves

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Layout is the rest of a format: how many bits its fields have, and which others are
// always set.
type Layout struct {
	Sequence, Random int    // bits, 16 at most
	High, Low        uint64 // what is set in each half
}

// The layouts that there are.
var (
	UUIDv7 = Layout{Sequence: 12, Random: 14, High: 7 << 12, Low: 1 << 63} // version and variant
	ULID   = Layout{Sequence: 16, Random: 16}
)

// MaxMilli is the last millisecond since 1970 that fits an id, in the year 10889.
const MaxMilli = 1<<48 - 1

// Make puts an id together. What does not fit is an error.
func (l Layout) Make(milli uint64, worker flake.Worker, sequence, random uint16) (id [16]byte, err error) {
	switch {
	case milli > MaxMilli:
		return id, fmt.Errorf("flake: %d ms since 1970 is beyond the last that fits an id, %d", milli, int64(MaxMilli))
	case worker > flake.MaxWorker:
		return id, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	case sequence>>l.Sequence != 0:
		return id, fmt.Errorf("flake: a sequence of %d, where 0 to %d fit", sequence, 1<<l.Sequence-1)
	case random>>l.Random != 0:
		return id, fmt.Errorf("flake: random bits of %#x, where %d fit", random, l.Random)
	}
	set(&id, milli<<16|l.High|uint64(sequence), l.low(worker)|uint64(random))
	return id, nil
}

// low returns the second half of the ids of a worker, but for the random bits.
func (l Layout) low(worker flake.Worker) uint64 { return l.Low | uint64(worker)<<l.Random }

// Milli returns the time of an id in ms since 1970.
func Milli(id [16]byte) uint64 { return binary.BigEndian.Uint64(id[:8]) >> 16 }

// Time returns the time of an id in UTC.
func Time(id [16]byte) time.Time { return time.UnixMilli(int64(Milli(id))).UTC() }

// Worker returns the worker of an id.
func (l Layout) Worker(id [16]byte) flake.Worker {
	return flake.Worker(binary.BigEndian.Uint64(id[8:])>>l.Random) & flake.MaxWorker
}

// SequenceOf returns the sequence of an id.
func (l Layout) SequenceOf(id [16]byte) uint16 {
	return binary.BigEndian.Uint16(id[6:]) & uint16(1<<l.Sequence-1)
}

// RandomOf returns the random bits of an id.
func (l Layout) RandomOf(id [16]byte) uint16 {
	return binary.BigEndian.Uint16(id[14:]) & uint16(1<<l.Random-1)
}

// Lowest returns the lowest id of a time. One before 1970 counts as 1970, one beyond
// MaxMilli as that.
func (l Layout) Lowest(t time.Time) (id [16]byte) {
	set(&id, min(tick.MilliOf(t), MaxMilli)<<16|l.High, l.Low)
	return id
}

// Highest returns the highest id of a time, which counts as for Lowest.
func (l Layout) Highest(t time.Time) (id [16]byte) {
	set(&id, min(tick.MilliOf(t), MaxMilli)<<16|l.High|(1<<l.Sequence-1), l.low(flake.MaxWorker)|(1<<l.Random-1))
	return id
}

// Plus returns the id that is i after another in a run.
func Plus[ID ~[16]byte](id ID, i int) ID {
	binary.BigEndian.PutUint64(id[:8], binary.BigEndian.Uint64(id[:8])+uint64(i))
	return id
}

// set writes in place, which is cheaper than to copy an array there.
func set[ID ~[16]byte](id *ID, high, low uint64) {
	binary.BigEndian.PutUint64((*id)[:8], high)
	binary.BigEndian.PutUint64((*id)[8:], low)
}
