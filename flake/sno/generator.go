package sno

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Options configure a [Generator]. The zero value is valid. The fields after Clock are used
// only by [Open].
type Options struct {
	// Overflows receives an [Overflow] for each tick that ran out of ids and made calls wait. It
	// may be nil.
	Overflows chan<- Overflow

	// Clock and the fields after it are like those of [flake.Options]. Logger also receives a
	// record if Open finds that the clock was set back.
	Clock             func() uint64
	AllowableDowntime time.Duration
	Logger            *slog.Logger
	Saved             func(time.Duration)
	Marks             *flake.Marks
	Bound             flake.Bound
}

// Generator makes unique ids of one partition. Any number of goroutines may use a Generator;
// it allocates nothing. On a zero Generator, Next and similar methods fail.
type Generator struct {
	passes   *passes
	marker   *durable.Marker
	overflow *overflow     // may be nil
	byTime   atomic.Uint64 // number of ids made by NewWithTime
}

// NewGenerator returns a generator that continues from a snapshot, and saves nothing. A nil
// snapshot means the full range of sequence numbers, and a partition that this process has not
// used yet; the caller must make sure that other processes do not use that partition.
//
// It fails if the snapshot is invalid, or with [ErrPartitionsExhausted].
func NewGenerator(s *Snapshot, o Options) (*Generator, error) {
	ids := &passes{clock: o.Clock, sleep: tick.Sleep, configured: s != nil}
	if s == nil {
		partition, err := partitions.next()
		if err != nil {
			return nil, err
		}
		s = &Snapshot{Partition: partition}
	}
	if err := ids.start(s); err != nil {
		return nil, err
	}
	g := &Generator{passes: ids, marker: durable.New(ids)}
	if o.Overflows != nil {
		g.overflow = &overflow{events: o.Overflows}
	}
	return g, nil
}

// Open returns a generator whose ids are unique across restarts with the same file. Close it
// when done.
//
// Open locks the file at path, which it creates if it does not exist, and continues from the
// snapshot in it. That snapshot stays ahead of the ids. The partition and the sequence numbers
// are those of s or, if s is nil, those in the file; the other fields of s are used only if there
// is no file.
//
// After a crash Open may wait for 3 s, unless ctx is done first. If the clock was set back by
// more, the generator continues at the earlier time with the other tick-tock bit, as a running
// generator does; Open fails with [flake.ErrClockBackwards] only if that bit may have been
// used at that time too. It fails with [flake.ErrClockAdvanced] if no generator ran for more
// than the allowable downtime. It also fails if the file is locked, does not hold a mark, is from
// another format, is damaged, or cannot be written; the error text says what to do. Open never
// overwrites a file that it cannot use.
func Open(ctx context.Context, path string, s *Snapshot, o Options) (*Generator, error) {
	g, err := NewGenerator(s, o)
	if err != nil {
		return nil, err
	}
	if g.marker, err = durable.Open(ctx, path, g.passes, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved, Marks: o.Marks, Bound: o.Bound,
	}); err != nil {
		return nil, err
	}
	return g, nil
}

// Close closes the generator, like [flake.Generator.Close].
func (g *Generator) Close() error { return g.marker.Close() }

// Next returns the next id, with metabyte 0; use [ID.WithMeta] to set it. If the ids of a tick
// are used up, it waits for the next tick, mostly asleep; if ctx is done first, it
// returns ctx's cause. It fails with [flake.ErrTimestampNotSaved] or [flake.ErrClosed]; with
// [flake.ErrClockBackwards] while the clock is at a time for which both tick-tock bits were
// used; or if the clock is before [Epoch] or after [MaxMilli].
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	if g.overflow == nil { // the common case, inlined
		p := g.passes.pass()
		milli, place, _, err := p.ids.Reserve(ctx, 1)
		if err == nil {
			id.set(milli, p.tag, p.min+uint16(place))
			return id, nil
		}
	}
	run, err := g.Reserve(ctx, 1)
	return run.First, err
}

// NextN fills dst with ids. It waits and fails like [Generator.Next], and returns the
// number of ids filled in, which is less than len(dst) only if it fails.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		run, err := g.Reserve(ctx, len(dst)-done)
		if err != nil {
			return done, err
		}
		for i := range run.Count {
			dst[done+i] = run.First.Plus(i)
		}
		done += run.Count
	}
	return done, nil
}

// Reserve returns 1 to n ids of one tick, at the cost of a single id. It waits and fails like
// [Generator.Next], and also fails if n is less than 1.
func (g *Generator) Reserve(ctx context.Context, n int) (run Run, err error) {
	for {
		p := g.passes.pass()
		milli, first, count, err := g.take(ctx, p, n)
		if err == nil {
			run.Count = count
			run.First.set(milli, p.tag, p.min+uint16(first))
			return run, nil
		}
		if errors.Is(err, flake.ErrClockBackwards) || errors.Is(err, flake.ErrClosed) {
			err = g.passes.turn(p, err)
		}
		if err != nil {
			return Run{}, err
		}
	}
}

func (g *Generator) take(ctx context.Context, p *pass, n int) (milli uint64, first, count int, err error) {
	if g.overflow != nil {
		milli, first, count, err = p.ids.TryReserve(n)
		switch {
		case errors.Is(err, tick.ErrUsedUp):
			full, _ := p.ids.Last()
			g.overflow.waiting.Add(1)
			defer g.overflow.end(full)
		case !errors.Is(err, flake.ErrTimestampNotSaved): // Reserve may wait for the save instead
			return milli, first, count, err
		}
	}
	return p.ids.Reserve(ctx, n)
}

// NewWithTime returns an id with a past time, for example for a record that had a different kind of
// id. All such ids, whatever their time, share a separate sequence that wraps within the bounds of
// the generator. Their tick-tock bit is 0. NewWithTime never waits. The caller must make sure that
// these ids do not collide with those of [Generator.Next], and that at most [Generator.PerTick] of
// them have the same time. A time before [Epoch] or after [MaxMilli] is an error.
func (g *Generator) NewWithTime(t time.Time) (ID, error) {
	milli := tick.MilliOf(t)
	if milli < Epoch || milli > MaxMilli {
		return ID{}, fmt.Errorf("flake: time %v is out of range: must be %v to %v", t, ID{}.Time(), maxID.Time())
	}
	p := g.passes.pass()
	if p == &none {
		return ID{}, tick.ErrZero
	}
	place := (g.byTime.Add(1) - 1) % uint64(g.PerTick())
	return join(milli, p.tag&0xFFFF, p.min+uint16(place)), nil
}

// CatchUp sleeps until the clock is at a time for which ids can be made. Call it after
// [flake.ErrClockBackwards]. If ctx is done first, it returns ctx's cause.
func (g *Generator) CatchUp(ctx context.Context) error { return g.marker.CatchUp(ctx) }

// Ready returns nil, or the error of Next or of the file, like [flake.Generator.Ready].
func (g *Generator) Ready() error { return g.marker.Ready() }

// Behind returns the minimum time until the clock is at a time for which ids can be made, or 0
// if it is at such a time now.
func (g *Generator) Behind() time.Duration { return g.marker.Behind() }

// Partition returns the partition of the generator's ids.
func (g *Generator) Partition() Partition { return g.passes.pass().partition() }

// PerTick returns the number of ids per tick of 4 ms.
func (g *Generator) PerTick() int { return g.passes.pass().ids.PerTick() }

// Waits returns the number of calls that waited because the ids of a tick were used up.
func (g *Generator) Waits() uint64 {
	p := g.passes.pass()
	return p.waits + p.ids.Waits()
}

// Last returns the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id with the current tick-tock bit.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	s := g.passes.done()
	return milliOf(s.WallHi), uint16(s.Sequence)
}

// Mark returns the mark in the file, an upper bound on the times of ids with the current
// tick-tock bit, or the zero time if there is no file.
func (g *Generator) Mark() time.Time { return g.marker.Mark() }

// LastSaved returns when the file was last written, like [flake.Generator.LastSaved].
func (g *Generator) LastSaved() (time.Time, error) { return g.marker.LastSaved() }

// Run is a run of consecutive ids: First and the Count-1 ids after it.
type Run = flake.RunOf[ID]

// New returns a new id with the given metabyte and needs no setup: as in muyo/sno, the first call
// in a process chooses a partition. No generator that [NewGenerator] makes with a nil snapshot in
// this process has the same partition. Any number of goroutines may call New. Ids ascend while the
// process runs, even if the clock is set back; their time is then ahead of the clock. If the ids
// of a tick, at least 32,768, are used up, New waits for the next tick. New panics if this process
// has used all partitions, or if the clock is before [Epoch] or after [MaxMilli].
//
// New saves nothing on disk, and a random partition of 16 bits is not enough to tell the
// processes of a fleet apart: among 100 processes, two have the same partition with a probability
// of 1 in 14. So each process begins the sequence of its ticks at a random number, in the lower
// half of the range. That adds 15 bits if few ids are made: two processes that make ids in the same
// tick make the same id with a probability of about 1 in 2^31, or 1 in 2^16 if each makes tens of
// thousands of ids. That is enough for tests and traces. For ids that must never repeat, use
// [Open].
func New(meta byte) ID {
	id, err := standard().Next(context.Background())
	if err != nil {
		panic(err)
	}
	return id.WithMeta(meta)
}

var standard = sync.OnceValue(func() *Generator {
	from := &Snapshot{Partition: digits.Must(partitions.next()), SequenceMin: uint16(rand.Uint32N(1 << 15))}
	return digits.Must(NewGenerator(from, Options{Clock: tick.ForwardClock()}))
})

// Overflow reports that the ids of a tick were used up, and that calls waited for the next
// tick. The generator sends one Overflow per such tick, after the tick has ended, and drops it if
// the channel cannot take it immediately: use a buffered channel. muyo/sno sends a
// SequenceOverflowNotification about every ms while calls wait. In that type, Now is the time
// of sending, and Ticks counts the notifications.
type Overflow struct {
	Now   time.Time // when the tick began
	Count uint32    // number of calls that waited
	Ticks uint32    // number of consecutive ticks that were used up, including this one
}

type overflow struct {
	events  chan<- Overflow
	waiting atomic.Int32 // number of calls

	mu    sync.Mutex // guards tick and ticks
	tick  uint64     // the last tick that was reported
	ticks uint32     // as in Overflow
}

// end records that a call no longer waits for the tick after milli's. The first such call reports
// milli's tick.
func (o *overflow) end(milli uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if milli != o.tick {
		if milli != o.tick+unit {
			o.ticks = 0
		}
		o.tick = milli
		o.ticks++
		select {
		case o.events <- Overflow{time.UnixMilli(int64(milli)).UTC(), uint32(o.waiting.Load()), o.ticks}:
		default:
		}
	}
	o.waiting.Add(-1)
}

// SequenceMin returns the sequence of the first id of each tick.
func (g *Generator) SequenceMin() uint16 { return g.passes.pass().min }

// SequenceMax returns the highest sequence of a tick.
func (g *Generator) SequenceMax() uint16 { return g.passes.pass().max() }

// Len returns the number of ids used in the current tick. The rest of the [Generator.PerTick]
// ids are available without waiting, unless other calls take them first.
func (g *Generator) Len() int {
	p := g.passes.pass()
	milli, used := p.ids.Last()
	if milli != p.ids.Now() {
		return 0
	}
	return used
}

// Sequence returns the sequence of the current tick's last id or, before the tick's first id,
// the lowest sequence.
func (g *Generator) Sequence() uint16 { return g.SequenceMin() + uint16(max(g.Len(), 1)-1) }

// minPool is the minimum number of sequence numbers, as in muyo/sno, whose documentation says 4.
const minPool = 6

// Snapshot is a generator's configuration and state, from which another generator can continue.
// Its JSON form is that of muyo/sno. Times are in units of 4 ms since 2010-01-01 UTC.
type Snapshot struct {
	Partition Partition `json:"partition"`

	// SequenceMin and SequenceMax are the lowest and the highest sequence number, in either
	// order. Generators with disjoint ranges can share a partition. A range must have at least
	// 6 numbers. A SequenceMax of 0 means 65535, unless SequenceMin is 65535.
	SequenceMin uint16 `json:"sequenceMin"`
	SequenceMax uint16 `json:"sequenceMax"`

	// Sequence is the last sequence number used at WallHi, if Now is WallHi;
	// otherwise all sequence numbers count as used.
	Sequence uint32 `json:"sequence"`

	Now      int64  `json:"now"`      // time of the snapshot
	WallHi   int64  `json:"wallHi"`   // time of the last id, or 0
	WallSafe int64  `json:"wallSafe"` // an upper bound on ids with the other tick-tock bit
	Drifts   uint32 `json:"drifts"`   // number of flips of the tick-tock bit
}

// BoundsError is the error for a [Snapshot] with invalid sequence numbers.
type BoundsError struct {
	Min, Max uint16 // the lowest and the highest
	Sequence uint32 // the last one used
	What     string // what is wrong
}

func (e *BoundsError) Error() string {
	return fmt.Sprintf("flake: sequence numbers from %d to %d, last used %d: %s", e.Min, e.Max, e.Sequence, e.What)
}

func (s *Snapshot) bounds() (low, high uint16, err error) {
	low, high = s.SequenceMin, s.SequenceMax
	if high == 0 && low != math.MaxUint16 {
		high = math.MaxUint16
	}
	low, high = min(low, high), max(low, high)
	switch {
	case int(high)-int(low)+1 < minPool:
		err = &BoundsError{low, high, s.Sequence, fmt.Sprintf("must be at least %d numbers", minPool)}
	case s.Sequence != 0 && s.Sequence < uint32(low):
		err = &BoundsError{low, high, s.Sequence, "the last used is below them"}
	}
	return low, high, err
}

// Snapshot returns the generator's state. If another generator will continue from the snapshot,
// call Snapshot after this generator has made its last id.
func (g *Generator) Snapshot() Snapshot {
	s := g.passes.done()
	s.Now = unitsOf(g.passes.Now())
	return s
}

// done returns a snapshot whose Now is not set.
func (s *passes) done() Snapshot {
	p := s.pass()
	of := Snapshot{
		Partition: p.partition(), SequenceMin: p.min, SequenceMax: p.max(), Sequence: uint32(p.min),
		WallSafe: unitsOf(p.safe), Drifts: p.drifts,
	}
	milli, used := p.ids.Last()
	of.WallHi = unitsOf(milli)
	if used > 0 {
		of.Sequence += uint32(used) - 1
	}
	return of
}

func milliOf(units int64) uint64 { return Epoch + uint64(units)*unit }
func unitsOf(milli uint64) int64 { return int64((max(milli, Epoch) - Epoch) / unit) }
