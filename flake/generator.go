package flake

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Options configure a [Generator]. The zero value is valid.
type Options struct {
	// Clock returns the time in milliseconds since 1970-01-01 UTC. Many goroutines
	// call it at once. nil means [SystemClock].
	Clock func() uint64

	// AllowableDowntime, of [Open] alone, is how long ids may not have been made
	// before a start is refused with [ErrClockAdvanced], for the clock may be wrong.
	// 0 means 30 days; below 0 is an error.
	AllowableDowntime time.Duration

	// Logger, of [Open] alone, is told of a new file, a wait, and trouble with the
	// file and its end; nil means nobody is.
	Logger *slog.Logger

	// Saved, of [Open] alone, is told how long each attempt to write the file took;
	// nil means nobody is.
	Saved func(time.Duration)

	// Marks, of [Open] alone, is the file of [OpenMarks] that keeps the mark beside
	// others, under path as its name, without space or slash; nil means a file of its own.
	Marks *Marks

	// Bound, of [Open] alone, is a further limit on the ids, which begin after it and
	// end at it, such as a claim of package workers; nil means that there is none.
	Bound Bound
}

// Bound is a limit on ids that comes from elsewhere than the file.
type Bound = durable.Bound

// The errors a caller may branch on, of this package, of snowflake and of sno. Each
// names in brackets the atom that an Erlang caller sees.
var (
	// ErrClockBackwards: the clock is behind the last id. It passes by itself
	// once the clock has caught up.
	ErrClockBackwards = tick.ErrClockBackwards

	// ErrClockAdvanced: the clock is further ahead of the last id than a node
	// may have been down.
	ErrClockAdvanced = tick.ErrClockAdvanced

	// ErrTimestampNotSaved: the time could not be made durable, so that an id
	// handed out now might be repeated after a crash. It passes by itself once
	// the file can be written.
	ErrTimestampNotSaved = tick.ErrTimestampNotSaved

	// ErrClosed: the generator was stopped.
	ErrClosed = tick.ErrClosed

	// ErrBase: a base that is not from 2 to 62.
	ErrBase = digits.ErrBase
)

const perMilli = 1 << 16 // ids a millisecond has

var shape = tick.Shape{First: 0, Last: tick.MaxLast, Unit: 1, PerTick: perMilli}

// Nexter is what hands out ids one by one: a generator of this package, of
// snowflake or of sno, and, of package client, the ids of a node (IDs) and those
// leased from it (Leased). What a program asks for ids may be any of them.
type Nexter[ID any] interface {
	// Next returns the next id. It may wait for it, until ctx is done.
	Next(ctx context.Context) (ID, error)
}

// Generator hands out ids: each higher than the last, never ahead of its clock,
// at most 65,536 a millisecond, up to the year 6429. Any number of goroutines may
// use one; it takes no locks and allocates nothing. The zero value has no ids:
// Next and the like fail.
type Generator struct {
	worker Worker
	core   durable.Core[*tick.Generator]
}

// NewGenerator returns a generator that starts from nothing and keeps nothing: that
// no earlier one with this worker has handed out ids of this time is the caller's to
// know (or use [Open]). A worker above [MaxWorker] is an error.
func NewGenerator(worker Worker, o Options) (*Generator, error) {
	if worker > MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	ids, err := tick.New(shape, o.Clock)
	if err != nil {
		return nil, err
	}
	return &Generator{worker: worker, core: durable.Core[*tick.Generator]{Source: ids}}, nil
}

// Open returns a generator that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file and worker, and each is higher.
// Close it when done.
//
// It locks the file at path, which it creates if there is none, and hands out only
// ids later than the mark in it. The mark is kept 3 s ahead of the clock, so after a
// crash Open may wait for as long; ctx can end the wait.
//
// It fails with [ErrClockBackwards] if the mark is further ahead of the clock,
// [ErrClockAdvanced] if it is older than the allowable downtime, and otherwise
// if the file is locked, is no mark, is damaged, or cannot be written; the text
// says what to do. It never starts anew where a file was.
func Open(ctx context.Context, path string, worker Worker, o Options) (*Generator, error) {
	g, err := NewGenerator(worker, o)
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

// Close ends the generator: calls under way and later fail with [ErrClosed]. One
// that [Open] returned brings the mark back from ahead of the clock, so that the
// next start need not wait, and gives up the lock. Close waits for the disk; if it
// cannot write, the next start waits instead. A second Close returns what the first
// did.
func (g *Generator) Close() error { return g.core.Close() }

// Next returns the next id. When the 65,536 of a millisecond are used it waits for
// the next one, yielding the processor, until ctx is done; that is an error with its
// cause. It fails with [ErrClockBackwards] while the clock is behind the last id,
// [ErrTimestampNotSaved] or [ErrClosed].
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	err = g.next(ctx, &id)
	return id, err
}

// next leaves so little to Next that the compiler puts that into its caller, and
// the id where it belongs: an array that is returned is copied.
func (g *Generator) next(ctx context.Context, id *ID) error {
	milli, first, err := g.core.Source.One(ctx)
	if err == nil {
		id.set(milli, uint64(g.worker)<<16|uint64(first))
	}
	return err
}

// NextN fills dst with ids, ascending, a whole range at a time, waiting and failing
// as [Generator.Next] does. It returns the number of ids filled in: less than
// len(dst) only with an error.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		milli, first, n, err := g.core.Source.Reserve(ctx, len(dst)-done)
		if err != nil {
			return done, err
		}
		low := uint64(g.worker)<<16 | uint64(first)
		for i := range n {
			dst[done+i].set(milli, low+uint64(i))
		}
		done += n
	}
	return done, nil
}

// Reserve takes up to n ids of one millisecond, n at least 1, at the price of
// one. It waits and fails as [Generator.Next] does.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	milli, first, count, err := g.core.Source.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return Run{Make(milli, g.worker, uint16(first)), count}, nil
}

// CatchUp waits, asleep, until the clock is no longer behind: what to do after
// [ErrClockBackwards]. It fails with the cause of ctx when that is done first.
func (g *Generator) CatchUp(ctx context.Context) error { return g.core.CatchUp(ctx) }

// Ready returns nil if there are ids now, and the file, if there is one, can be
// written, without which there soon are none. Otherwise it fails as Next would, or
// says what the trouble with the file is.
func (g *Generator) Ready() error { return g.core.Ready() }

// Behind is how far the clock is behind the last id: how long it takes at least
// until there are ids again. 0: it is not.
func (g *Generator) Behind() time.Duration { return g.core.Behind() }

// Worker is the worker of every id of the generator.
func (g *Generator) Worker() Worker { return g.worker }

// PerTick is how many ids there are a millisecond.
func (g *Generator) PerTick() int { return g.core.Source.PerTick() }

// Waits is how often a call found the ids of a millisecond used up, and waited.
func (g *Generator) Waits() uint64 { return g.core.Source.Waits() }

// Last is the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id that is used up: no later one was handed out.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	milli, used := g.core.Source.Last()
	return milli, uint16(max(used, 1) - 1)
}

// Mark is the time that no id is later than, as it stands in the file; the zero time
// without a file.
func (g *Generator) Mark() time.Time { return g.core.Mark() }

// LastSaved is the time at which the file was last written, and the trouble there
// has been with it since, or nil. It is the zero time without a file.
func (g *Generator) LastSaved() (time.Time, error) { return g.core.LastSaved() }

// Run is ids that follow each other by sequence: First and the Count-1 after it.
type Run = RunOf[ID]

// RunOf is ids of any format that follow each other by sequence: First and the Count-1
// after it. Random bits, if the format has such, are those of First.
type RunOf[ID interface{ Plus(i int) ID }] struct {
	First ID
	Count int
}

// At returns the id at place i, 0 <= i < Count.
func (r RunOf[ID]) At(i int) ID { return r.First.Plus(i) }

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
func New() ID {
	id, err := standard().Next(context.Background())
	if err != nil { // never, with this clock
		panic(err)
	}
	return id
}

var standard = sync.OnceValue(func() *Generator {
	g, err := NewGenerator(RandomWorker(), Options{Clock: tick.ForwardClock()})
	if err != nil {
		panic(err)
	}
	return g
})

// SystemClock returns a clock that follows the machine's wall clock at the price
// of its monotonic one, which is half. A step of the wall clock shows within a
// millisecond of running time. Without steps its readings never decrease and are
// never ahead of the wall clock.
//
// A step ahead by more than 3 s shows when the wall clock has stayed there for a
// minute; until then time goes on as if there had been none. After ids of a time
// far ahead there would be none until it has come. That the machine slept is no
// step, where that is known: on Linux.
func SystemClock() func() uint64 { return tick.SystemClock() }

// MonotonicClock returns a clock that reads the machine's wall clock once, now, and goes
// on by monotonic time: no later step of the wall clock shows, so ids neither end nor
// jump when it is set.
//
// The time of ids then differs from the wall clock's by all that this was set by, and on
// Linux by all that the machine has slept, until the program makes another. A generator
// that is opened next may find its mark ahead of the clock, and wait or refuse to start,
// as [Open] says: no id comes twice.
func MonotonicClock() func() uint64 { return tick.MonotonicClock() }
