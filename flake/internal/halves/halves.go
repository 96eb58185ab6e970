// Package halves makes version 7 UUIDs and ULIDs: 16-byte ids whose first half holds the time
// and sequence, and whose second half holds the worker and random bits.
//
//	 0                        48                64 - Sequence      64
//	+-------------------------+------------------+----------------+
//	|       milliseconds      | from Layout.High |    sequence    |
//	+---------+---------------+------------------+----------------+
//	| fr. Low |               worker, 48         |     random     |
//	+---------+----------------------------------+----------------+
//	 64                                           128 - Random     128
//
// Within a millisecond, the first half of a generator's id is one more than that of its
// previous id. The random bits make an id harder to guess; it is unique without them.
//
// Version 7 UUIDs with the last sequence are an exception: Next and NextN can make many of them in
// a millisecond, and their random bits are a counter (RFC 9562 section 6.2). Reserve makes none of
// them, because clients of a node may replace the random bits of its ids.
package halves

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Layout holds the widths of the fields that vary in width, and the bits that are always set.
type Layout struct {
	Sequence, Random int    // numbers of bits, at most 16
	High, Low        uint64 // the bits that are always set in each half
	PerMilli, InRuns int    // number of ids per millisecond, and how many of them runs can contain
}

// The layouts of the two formats.
var (
	UUIDv7 = Layout{Sequence: 12, Random: 14, High: 7 << 12, Low: 1 << 63, // version and variant
		PerMilli: 1<<12 - 1 + 1<<14, InRuns: 1<<12 - 1}
	ULID = Layout{Sequence: 16, Random: 16, PerMilli: 1 << 16, InRuns: 1 << 16}
)

// MaxMilli is the latest time of an id in milliseconds since 1970, in the year 10889.
const MaxMilli = 1<<48 - 1

// Make returns the id with these fields, or an error if a field does not fit.
func (l Layout) Make(milli uint64, worker flake.Worker, sequence, random uint16) (id [16]byte, err error) {
	switch {
	case milli > MaxMilli:
		return id, fmt.Errorf("flake: time %d ms since 1970 is out of range: must be at most %d", milli, int64(MaxMilli))
	case worker > flake.MaxWorker:
		return id, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	case sequence>>l.Sequence != 0:
		return id, fmt.Errorf("flake: sequence %d is out of range: must be 0 to %d", sequence, 1<<l.Sequence-1)
	case random>>l.Random != 0:
		return id, fmt.Errorf("flake: random bits %#x have more than %d bits", random, l.Random)
	}
	set(&id, milli<<16|l.High|uint64(sequence), l.low(worker)|uint64(random))
	return id, nil
}

// low returns the second half of a worker's ids, with random bits 0.
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

// Lowest returns the lowest id that can have the time t. A time before 1970 counts as 1970,
// and a time after MaxMilli counts as MaxMilli.
func (l Layout) Lowest(t time.Time) (id [16]byte) {
	set(&id, min(tick.MilliOf(t), MaxMilli)<<16|l.High, l.Low)
	return id
}

// Highest is like Lowest, but returns the highest id.
func (l Layout) Highest(t time.Time) (id [16]byte) {
	set(&id, min(tick.MilliOf(t), MaxMilli)<<16|l.High|(1<<l.Sequence-1), l.low(flake.MaxWorker)|(1<<l.Random-1))
	return id
}

// Plus returns the id that is i places after id in a run.
func Plus[ID ~[16]byte](id ID, i int) ID {
	binary.BigEndian.PutUint64(id[:8], binary.BigEndian.Uint64(id[:8])+uint64(i))
	return id
}

// set writes in place, which takes less time than copying an array.
func set[ID ~[16]byte](id *ID, high, low uint64) {
	binary.BigEndian.PutUint64((*id)[:8], high)
	binary.BigEndian.PutUint64((*id)[8:], low)
}

// ID is the type constraint for a format's ids.
type ID[T any] interface {
	~[16]byte
	Plus(i int) T
}

// Generator is the generator of package uuidv7 or ulid. Its methods are like those of
// [flake.Generator], where they are documented.
type Generator[T ID[T]] struct {
	ids       *tick.Generator
	worker    flake.Worker
	high, low uint64 // the bits of each half that are the same in all ids
	random    uint64 // mask for the random bits
	inRuns    int    // Layout.InRuns
	marker    *durable.Marker
}

func New[T ID[T]](l Layout, worker flake.Worker, o flake.Options) (*Generator[T], error) {
	if worker > flake.MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: l.PerMilli}, o.Clock)
	if err != nil {
		return nil, err
	}
	return &Generator[T]{ids, worker, l.High, l.low(worker), 1<<l.Random - 1, l.InRuns, durable.New(ids)}, nil
}

func Open[T ID[T]](
	ctx context.Context, path string, l Layout, worker flake.Worker, o flake.Options,
) (*Generator[T], error) {
	g, err := New[T](l, worker, o)
	if err != nil {
		return nil, err
	}
	if g.marker, err = durable.Open(ctx, path, g.ids, durable.Options(o)); err != nil {
		return nil, err
	}
	return g, nil
}

// Fresh returns a function that returns new ids. The first call chooses a random worker for all
// of them. Their times come from a clock that is never set back.
func Fresh[T ID[T]](l Layout) func() T {
	standard := sync.OnceValue(func() *Generator[T] {
		g, err := New[T](l, flake.RandomWorker(), flake.Options{Clock: tick.ForwardClock()})
		if err != nil {
			panic(err)
		}
		return g
	})
	return func() T {
		id, err := standard().Next(context.Background())
		if err != nil { // never happens with this clock
			panic(err)
		}
		return id
	}
}

// Next returns the next id. It waits and fails like [flake.Generator.Next].
func (g *Generator[T]) Next(ctx context.Context) (id T, err error) {
	err = g.next(ctx, &id)
	return id, err
}

// next keeps Next small enough to be inlined.
func (g *Generator[T]) next(ctx context.Context, id *T) error {
	milli, used, err := g.ids.One(ctx)
	if err == nil {
		g.set(id, milli, used)
	}
	return err
}

// set makes the id with an index in its millisecond. Each thread of Go's runtime has its own
// ChaCha8, seeded by the system, so getting random bits takes no lock.
func (g *Generator[T]) set(id *T, milli uint64, index int) {
	if index >= g.inRuns {
		set(id, milli<<16|g.high|uint64(g.inRuns), g.low|uint64(index-g.inRuns))
		return
	}
	set(id, milli<<16|g.high|uint64(index), g.low|rand.Uint64()&g.random)
}

// NextN fills dst with ids in ascending order, like [flake.Generator.NextN].
func (g *Generator[T]) NextN(ctx context.Context, dst []T) (int, error) {
	done := 0
	for done < len(dst) {
		milli, used, n, err := g.ids.Reserve(ctx, len(dst)-done)
		if err != nil {
			return done, err
		}
		for i := range n {
			g.set(&dst[done+i], milli, used+i)
		}
		done += n
	}
	return done, nil
}

// Reserve returns 1 to n ids of one millisecond, like [flake.Generator.Reserve].
func (g *Generator[T]) Reserve(ctx context.Context, n int) (r flake.RunOf[T], err error) {
	milli, used, count, err := g.ids.ReserveBelow(ctx, n, g.inRuns)
	if err == nil {
		g.set(&r.First, milli, used)
	}
	r.Count = count
	return r, err
}

// CatchUp sleeps until the clock is no longer behind the last id, like
// [flake.Generator.CatchUp].
func (g *Generator[T]) CatchUp(ctx context.Context) error { return g.marker.CatchUp(ctx) }

// Ready returns nil, or the error of Next or of the file, like [flake.Generator.Ready].
func (g *Generator[T]) Ready() error { return g.marker.Ready() }

// Behind returns how far the clock is behind the last id, or 0.
func (g *Generator[T]) Behind() time.Duration { return g.marker.Behind() }

// Worker returns the worker in every id.
func (g *Generator[T]) Worker() flake.Worker { return g.worker }

// PerTick returns the number of ids per millisecond that Reserve can return.
func (g *Generator[T]) PerTick() int { return g.inRuns }

// Waits returns the number of calls that waited for the next millisecond.
func (g *Generator[T]) Waits() uint64 { return g.ids.Waits() }

// Mark returns the mark in the file, like [flake.Generator.Mark].
func (g *Generator[T]) Mark() time.Time { return g.marker.Mark() }

// LastSaved returns when the file was last written, like [flake.Generator.LastSaved].
func (g *Generator[T]) LastSaved() (time.Time, error) { return g.marker.LastSaved() }

// Close closes the generator, like [flake.Generator.Close].
func (g *Generator[T]) Close() error { return g.marker.Close() }

// Last returns the time, in ms since 1970, and the sequence of the last id.
func (g *Generator[T]) Last() (milli uint64, sequence uint16) {
	milli, used := g.ids.Last()
	return milli, uint16(min(max(used, 1)-1, g.inRuns))
}
