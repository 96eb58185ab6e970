package sno

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Clock gives the time in milliseconds since 1970-01-01 UTC. It is called by
// many goroutines at once.
type Clock = func() uint64

// Options are what a generator can do without; the zero value is fit for use.
type Options struct {
	// Clock is the clock; nil means the machine's, as flake.SystemClock gives it.
	Clock Clock

	// Overflows is told whenever the ids of a tick were used up and calls waited;
	// nil means that nobody is.
	Overflows chan<- Overflow

	// AllowableDowntime is how long ids may not have been made before [Open]
	// fails with [ErrClockAdvanced], for the clock may be wrong. 0 means
	// DefaultDowntime; below 0 is an error.
	AllowableDowntime time.Duration

	// Logger is told by [Open] and later of a new file, a wait, a clock set back
	// at the start, and trouble with the file and its end; nil means nobody is.
	Logger *slog.Logger

	// Saved is told how long each attempt to write the file took; nil means
	// nobody is.
	Saved func(time.Duration)
}

// Generator hands out ids of one partition, none twice. Any number of goroutines
// may use one; it allocates nothing. The zero value has no ids: New and the like
// fail.
type Generator struct {
	now      atomic.Pointer[pass]
	overflow *overflow // nil: nobody is told
	clock    Clock
	sleep    tick.Sleeper
	byTime   atomic.Uint64 // ids of NewWithTime

	turning sync.Mutex // held to change now, or what follows
	closed  bool
}

// NewGenerator gives a generator that goes on from a snapshot. With nil it
// starts from nothing, with all of the sequence and a partition that this process
// has not given out before; what other processes have is the caller's to know.
//
// A snapshot that makes no sense, and partitions that are exhausted, are an error.
func NewGenerator(s *Snapshot, o Options) (*Generator, error) {
	if s == nil {
		partition, err := partitions.next()
		if err != nil {
			return nil, err
		}
		s = &Snapshot{Partition: partition}
	}
	g := &Generator{clock: o.Clock, sleep: tick.Sleep}
	if o.Overflows != nil {
		g.overflow = &overflow{told: o.Overflows}
	}
	return g, g.start(s)
}

func (g *Generator) start(s *Snapshot) error {
	p, err := s.start(g.clock)
	if err != nil {
		return err
	}
	g.now.Store(p)
	return nil
}

// New gives the next id, with a metabyte. When those of a tick are used up it
// waits for the next one, yielding the processor; while the clock is behind, in
// an unsafe time, asleep. It fails with [ErrTimestampNotSaved] or [ErrClosed],
// and if the clock is before 2010 or after 2079.
func (g *Generator) New(meta byte) (id ID, err error) {
	if g.overflow == nil { // without a detour, as a rule
		p := g.pass()
		milli, place, _, err := p.ids.Reserve(context.Background(), 1)
		if err == nil {
			id.set(milli, p.tag|uint64(meta)<<16, p.min+uint16(place))
			return id, nil
		}
	}
	var ids [1]ID
	_, err = g.NewN(context.Background(), meta, ids[:])
	return ids[0], err
}

// NewN fills dst with ids, a whole range at a time, waiting as [Generator.New]
// does until ctx is done. It gives the number of ids filled in: less than
// len(dst) only with an error.
func (g *Generator) NewN(ctx context.Context, meta byte, dst []ID) (int, error) {
	for done := 0; done < len(dst); {
		run, err := g.reserve(ctx, meta, len(dst)-done)
		if errors.Is(err, ErrClockBackwards) {
			err = g.CatchUp(ctx)
		}
		if err != nil {
			return done, err
		}
		for i := range run.Count {
			dst[done+i] = run.At(i)
		}
		done += run.Count
	}
	return len(dst), nil
}

// Reserve takes up to n ids of one tick, n at least 1, at the price of one. When
// those of a tick are used up it waits for the next, until ctx is done; while the
// clock is behind, in an unsafe time, it fails with [ErrClockBackwards] rather
// than wait. Else it fails as [Generator.New] does.
func (g *Generator) Reserve(ctx context.Context, meta byte, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	return g.reserve(ctx, meta, n)
}

func (g *Generator) reserve(ctx context.Context, meta byte, n int) (run Run, err error) {
	for {
		p := g.pass()
		milli, first, count, err := g.take(ctx, p, n)
		if err == nil {
			run.Count = count
			run.First.set(milli, p.tag|uint64(meta)<<16, p.min+uint16(first))
			return run, nil
		}
		if errors.Is(err, ErrClockBackwards) || errors.Is(err, ErrClosed) {
			err = g.turn(p, err)
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
	case errors.Is(err, ErrTimestampNotSaved): // perhaps it only has to be waited for
		return p.ids.Reserve(ctx, n)
	case !errors.Is(err, tick.ErrUsedUp):
		return milli, first, count, err
	}
	full, _ := p.ids.Last()
	g.overflow.begin()
	defer g.overflow.end(full)
	return p.ids.Reserve(ctx, n)
}

// Ready tells whether there are ids now. If not it fails as [Generator.New]
// would, but while the clock is behind, in an unsafe time, with
// [ErrClockBackwards].
func (g *Generator) Ready() error {
	p := g.pass()
	switch err := p.ids.Ready(); {
	case errors.Is(err, ErrClockBackwards):
		if now := p.ids.Now(); now < Epoch {
			return beforeEpoch(now)
		}
		if p.lag() > 0 {
			return ErrClockBackwards
		}
	case errors.Is(err, ErrClosed):
		g.turning.Lock()
		defer g.turning.Unlock()
		if g.closed {
			return ErrClosed
		}
	default:
		return err
	}
	return nil // there can be another pass
}

// Behind is how long it takes at least until the clock is out of an unsafe time,
// and there are ids again. 0: it is not in one.
func (g *Generator) Behind() time.Duration { return tick.Milliseconds(g.pass().lag()) }

// CatchUp waits until the clock is out of an unsafe time, asleep: what to do
// after [ErrClockBackwards]. It fails with ctx's cause when that is done first.
func (g *Generator) CatchUp(ctx context.Context) error {
	return tick.Await(ctx, g.sleep, func() uint64 { return g.pass().lag() })
}

// Run is ids that follow each other by sequence: First and the Count-1 after it.
type Run struct {
	First ID
	Count int
}

// At gives the id at place i, 0 <= i < Count.
func (r Run) At(i int) ID {
	id, sequence := r.First, r.First.Sequence()+uint16(i)
	id[8], id[9] = byte(sequence>>8), byte(sequence)
	return id
}

// NewWithTime gives an id of a time of the past, as for records that had other
// ids. Such ids have a sequence of their own, which goes round the generator's
// bounds whatever the time, never wait, and have the tick-tock bit 0: that they
// are not those of [Generator.New], and that no more than [Generator.Cap] have one
// time, is the caller's to know. A time before 2010 or after 2079 is an error.
func (g *Generator) NewWithTime(meta byte, t time.Time) (ID, error) {
	milli := tick.MilliOf(t)
	if milli < Epoch || milli > MaxMilli {
		return ID{}, fmt.Errorf("flake: %v is no time of an id, which is from %v to %v", t, ID{}.Time(), Max.Time())
	}
	p := g.pass()
	if p == &none {
		return ID{}, tick.ErrZero
	}
	place := (g.byTime.Add(1) - 1) % uint64(g.Cap())
	return join(milli, p.tag&0xFFFF|uint64(meta)<<16, p.min+uint16(place)), nil
}

// Partition is the partition of every id of the generator.
func (g *Generator) Partition() (p Partition) {
	p.PutUint16(uint16(g.pass().tag))
	return p
}

// SequenceMin is the lowest sequence number of an id of the generator.
func (g *Generator) SequenceMin() uint16 { return g.pass().min }

// SequenceMax is the highest.
func (g *Generator) SequenceMax() uint16 { return g.SequenceMin() + uint16(g.Cap()-1) }

// Cap is how many ids the generator has in a tick.
func (g *Generator) Cap() int { return g.pass().ids.PerTick() }

// Len is how many of the tick that it is are used.
func (g *Generator) Len() int {
	ids := g.pass().ids
	if milli, used := ids.Last(); milli == ids.Now() {
		return used
	}
	return 0
}

// Last gives the time, in ms since 1970, and the sequence that are used up: no
// id with this tick-tock bit is later.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	s := g.done()
	return milliOf(s.WallHi), uint16(s.Sequence)
}

// Waits is how often a call found the ids of a tick used up, and waited.
func (g *Generator) Waits() uint64 {
	p := g.pass()
	return p.waits + p.ids.Waits()
}

func beforeEpoch(now uint64) error {
	return fmt.Errorf("flake: the clock gives %d ms since 1970, before the first that an id can have, %d", now, int64(Epoch))
}
