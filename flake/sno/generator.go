package sno

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Options configure a [Generator]. The zero value is valid.
type Options struct {
	// Overflows is told whenever the ids of a tick were used up and calls waited;
	// nil means that nobody is.
	Overflows chan<- Overflow

	// Clock returns the time in milliseconds since 1970-01-01 UTC. Many goroutines
	// call it at once. nil means [flake.SystemClock].
	Clock func() uint64

	// AllowableDowntime, of [Open] alone, is how long ids may not have been made
	// before a start is refused with [flake.ErrClockAdvanced], for the clock may be
	// wrong. 0 means 30 days; below 0 is an error.
	AllowableDowntime time.Duration

	// Logger, of [Open] alone, is told of a new file, a wait, a clock set back at
	// the start, and trouble with the file and its end; nil means nobody is.
	Logger *slog.Logger

	// Saved, of [Open] alone, is told how long each attempt to write the file took;
	// nil means nobody is.
	Saved func(time.Duration)

	// Marks, of [Open] alone, is the file of [flake.OpenMarks] that keeps the mark beside
	// others, under path as its name, without space or slash; nil means a file of its own.
	Marks *flake.Marks

	// Bound, of [Open] alone, is a further limit on the ids: see [flake.Options].
	Bound flake.Bound
}

// Generator hands out ids of one partition, none twice. Any number of goroutines
// may use one; it allocates nothing. The zero value has no ids: Next and the like
// fail.
type Generator struct {
	core     durable.Core[*passes]
	overflow *overflow     // nil: nobody is told
	byTime   atomic.Uint64 // ids of NewWithTime
}

// NewGenerator returns a generator that goes on from a snapshot, and keeps nothing.
// With nil it starts from nothing, with all of the sequence and a partition that
// this process has not given out before; what other processes have is the caller's
// to know.
//
// A snapshot that makes no sense, and partitions that are exhausted, are an error.
func NewGenerator(s *Snapshot, o Options) (*Generator, error) {
	ids := &passes{clock: o.Clock, configured: s != nil}
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
	g := &Generator{core: durable.Core[*passes]{Source: ids}}
	if o.Overflows != nil {
		g.overflow = &overflow{told: o.Overflows}
	}
	return g, nil
}

// Open returns a generator that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file. Close it when done.
//
// It locks the file at path, which it creates if there is none, and goes on from
// what is in it: the snapshot of the generator before, kept ahead of all that it
// did. The configuration is that of s, and without s that in the file; the rest of s
// counts only if there is no file.
//
// After a crash Open may wait for 3 s; ctx can end the wait. If the clock was set
// back by more, ids go on in that past with the other tick-tock bit, as in a
// generator that runs; Open fails with [flake.ErrClockBackwards] only if that one
// may be used there too. It fails with [flake.ErrClockAdvanced] if nothing has run
// for more than the allowable downtime, and otherwise if the file is locked, is no
// mark, is that of another format, is damaged, or cannot be written; the text says
// what to do. It never starts anew where a file was.
func Open(ctx context.Context, path string, s *Snapshot, o Options) (*Generator, error) {
	g, err := NewGenerator(s, o)
	if err != nil {
		return nil, err
	}
	err = g.core.Open(ctx, path, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved, Marks: o.Marks, Bound: o.Bound,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Close ends the generator: calls under way and later fail with [flake.ErrClosed].
// One that [Open] returned brings the mark back from ahead of the clock, so that the
// next start need not wait, and gives up the lock. Close waits for the disk; if it
// cannot write, the next start waits instead. A second Close returns what the first
// did.
func (g *Generator) Close() error { return g.core.Close() }

// Next returns the next id, with metabyte 0: see [ID.WithMeta]. When those of a tick
// are used up it waits for the next one, yielding the processor, until ctx is done;
// that is an error with its cause. It fails with [flake.ErrClockBackwards] while the
// clock is behind, in an unsafe time, [flake.ErrTimestampNotSaved] or
// [flake.ErrClosed], and if the clock is before 2010 or after 2079.
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	if g.overflow == nil { // without a detour, as a rule
		p := g.core.Source.pass()
		milli, place, _, err := p.ids.Reserve(ctx, 1)
		if err == nil {
			id.set(milli, p.tag, p.min+uint16(place))
			return id, nil
		}
	}
	run, err := g.reserve(ctx, 1)
	return run.First, err
}

// NextN fills dst with ids, a whole range at a time, waiting and failing as
// [Generator.Next] does. It returns the number of ids filled in: less than len(dst)
// only with an error.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		run, err := g.reserve(ctx, len(dst)-done)
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

// Reserve takes up to n ids of one tick, n at least 1, at the price of one. It waits
// and fails as [Generator.Next] does.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	return g.reserve(ctx, n)
}

func (g *Generator) reserve(ctx context.Context, n int) (run Run, err error) {
	for {
		p := g.core.Source.pass()
		milli, first, count, err := g.take(ctx, p, n)
		if err == nil {
			run.Count = count
			run.First.set(milli, p.tag, p.min+uint16(first))
			return run, nil
		}
		if errors.Is(err, flake.ErrClockBackwards) || errors.Is(err, flake.ErrClosed) {
			err = g.core.Source.turn(p, err)
		}
		if err != nil {
			return Run{}, err
		}
	}
}

func (g *Generator) take(ctx context.Context, p *pass, n int) (milli uint64, first, count int, err error) {
	if g.overflow == nil {
		return p.ids.Reserve(ctx, n)
	}
	milli, first, count, err = p.ids.TryReserve(n)
	switch {
	case errors.Is(err, flake.ErrTimestampNotSaved): // perhaps it only has to be waited for
		return p.ids.Reserve(ctx, n)
	case !errors.Is(err, tick.ErrUsedUp):
		return milli, first, count, err
	}
	full, _ := p.ids.Last()
	g.overflow.begin()
	defer g.overflow.end(full)
	return p.ids.Reserve(ctx, n)
}

// NewWithTime returns an id of a time of the past, as for records that had other
// ids. Such ids have a sequence of their own, which goes round the generator's
// bounds whatever the time, never wait, and have the tick-tock bit 0: that they
// are not those of [Generator.Next], and that no more than [Generator.PerTick] have
// one time, is the caller's to know. A time before 2010 or after 2079 is an error.
func (g *Generator) NewWithTime(t time.Time) (ID, error) {
	milli := tick.MilliOf(t)
	if milli < Epoch || milli > MaxMilli {
		return ID{}, fmt.Errorf("flake: %v is no time of an id, which is from %v to %v", t, ID{}.Time(), maxID.Time())
	}
	p := g.core.Source.pass()
	if p == &none {
		return ID{}, tick.ErrZero
	}
	place := (g.byTime.Add(1) - 1) % uint64(g.PerTick())
	return join(milli, p.tag&0xFFFF, p.min+uint16(place)), nil
}

// CatchUp waits, asleep, until the clock is out of an unsafe time: what to do after
// [flake.ErrClockBackwards]. It fails with the cause of ctx when that is done first.
func (g *Generator) CatchUp(ctx context.Context) error { return g.core.CatchUp(ctx) }

// Ready returns nil if there are ids now, and the file, if there is one, can be
// written, without which there soon are none. Otherwise it fails as Next would, or
// says what the trouble with the file is.
func (g *Generator) Ready() error { return g.core.Ready() }

// Behind is how long it takes at least until the clock is out of an unsafe time,
// and there are ids again. 0: it is not in one.
func (g *Generator) Behind() time.Duration { return g.core.Behind() }

// Partition is the partition of every id of the generator.
func (g *Generator) Partition() Partition { return g.core.Source.pass().partition() }

// PerTick is how many ids the generator has in 4 ms.
func (g *Generator) PerTick() int { return g.core.Source.pass().ids.PerTick() }

// Waits is how often a call found the ids of a tick used up, and waited.
func (g *Generator) Waits() uint64 {
	p := g.core.Source.pass()
	return p.waits + p.ids.Waits()
}

// Last is the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id that is used up: no later one with this tick-tock bit was handed out.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	s := g.core.Source.done()
	return milliOf(s.WallHi), uint16(s.Sequence)
}

// Mark is the time that no id with the tick-tock bit of the last one is later than,
// as it stands in the file; the zero time without a file.
func (g *Generator) Mark() time.Time { return g.core.Mark() }

// LastSaved is the time at which the file was last written, and the trouble there
// has been with it since, or nil. It is the zero time without a file.
func (g *Generator) LastSaved() (time.Time, error) { return g.core.LastSaved() }

// Run is ids that follow each other by sequence: First and the Count-1 after it.
type Run = flake.RunOf[ID]

// New returns an id with a metabyte, with nothing to set up: as the peer's, of a
// partition that is made up when the process first calls it, and that no generator of
// [NewGenerator] has there. Any number of goroutines may call it. Ids ascend as long as
// the process lives, also when the clock is set back: their time is ahead of it then.
// When those of a tick are used, at least 32,768, New waits for the next one. It panics
// if this process has given out all partitions, or the clock is before 2010 or after 2079.
//
// Nothing is kept on disk, and 16 random bits of partition do not tell the processes of a
// fleet apart: of 100, two have the same with a chance of one in 14. So the sequence of a
// tick begins somewhere in its lower half, which are 15 bits more if few ids are made:
// two processes that both make ids in one tick make the same with a chance of about one in
// 2^31, and of one in 2^16 if each makes tens of thousands. That will do for tests and
// traces. Ids that may never come twice are for [Open].
func New(meta byte) ID {
	id, err := standard().Next(context.Background())
	if err != nil {
		panic(err)
	}
	return id.WithMeta(meta)
}

var standard = sync.OnceValue(func() *Generator {
	partition, err := partitions.next()
	if err != nil {
		panic(err)
	}
	from := &Snapshot{Partition: partition, SequenceMin: uint16(rand.Uint32N(1 << 15))}
	g, err := NewGenerator(from, Options{Clock: tick.ForwardClock()})
	if err != nil {
		panic(err)
	}
	return g
})

// Overflow tells that the ids of a tick were used up, and calls waited for the
// next. It comes once a tick, when that is over, and not at all if nobody takes it
// then: a channel with room loses none. The peer's SequenceOverflowNotification
// comes while calls wait, looked at every ms or so: there Now is when that was,
// and Ticks are those looks.
type Overflow struct {
	Now   time.Time // when the tick began
	Count uint32    // how many calls wait
	Ticks uint32    // how many ticks of 4 ms in a row were used up so, this one included
}

type overflow struct {
	told chan<- Overflow

	mu      sync.Mutex
	waiting uint32
	tick    uint64 // the last that was told of
	ticks   uint32
}

// begin notes that a call waits.
func (o *overflow) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting++
}

// end notes that a call no longer waits for the tick after milli.
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
		case o.told <- Overflow{time.UnixMilli(int64(milli)).UTC(), o.waiting, o.ticks}:
		default:
		}
	}
	o.waiting--
}

// SequenceMin is the sequence of the first id of each tick.
func (g *Generator) SequenceMin() uint16 { return g.core.Source.pass().min }

// SequenceMax is the sequence of the last id that a tick can have.
func (g *Generator) SequenceMax() uint16 { return g.core.Source.pass().max() }

// Len is how many ids of the current tick are used up. Of [Generator.PerTick] the others
// can be had without waiting, unless somebody else takes them.
func (g *Generator) Len() int {
	p := g.core.Source.pass()
	milli, used := p.ids.Last()
	if milli != p.ids.Now() {
		return 0
	}
	return used
}

// Sequence is the sequence of the last id of the current tick, or that of its first if it
// has none yet.
func (g *Generator) Sequence() uint16 { return g.SequenceMin() + uint16(max(g.Len(), 1)-1) }
