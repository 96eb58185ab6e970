package flake

import (
	"context"
	"fmt"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

const perMilli = tick.MaxPerTick // ids a millisecond has

var shape = tick.Shape{First: 0, Last: tick.MaxLast, Unit: 1, PerTick: perMilli}

// Generator hands out ids: each higher than the last, never ahead of its clock,
// at most 65,536 a millisecond, up to the year 6429. Any number of goroutines may
// use one; it takes no locks and allocates nothing. The zero value has no ids:
// Next and the like fail.
type Generator struct {
	worker Worker
	core   *tick.Generator
}

// NewGenerator gives a generator that starts from nothing: that no earlier one
// with this worker has handed out ids of this time is the caller's to know (or
// use [Open]). A nil clock means [SystemClock]. A worker above [MaxWorker] is
// an error.
func NewGenerator(worker Worker, clock Clock) (*Generator, error) {
	if worker > MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	core, err := tick.New(shape, clock)
	if err != nil {
		return nil, err
	}
	return &Generator{worker, core}, nil
}

// Worker is the worker of every id of the generator.
func (g *Generator) Worker() Worker { return g.worker }

// Last gives the time and sequence that are used up: no later id was handed out.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	milli, used := g.core.Last()
	return milli, uint16(max(used, 1) - 1)
}

// Ready tells whether there are ids now. If not it fails as [Generator.Next]
// would.
func (g *Generator) Ready() error { return g.core.Ready() }

// Behind is how far the clock is behind the last id: how long it takes at least
// until there are ids again. 0: it is not.
func (g *Generator) Behind() time.Duration {
	return tick.Milliseconds(g.core.Behind())
}

// Waits is how often a call found the ids of a millisecond used up, and waited.
func (g *Generator) Waits() uint64 { return g.core.Waits() }

// Next gives the next id. When the 65,536 of a millisecond are used it waits
// for the next one, yielding the processor. It fails with [ErrClockBackwards]
// while the clock is behind the last id, [ErrTimestampNotSaved] or [ErrClosed].
func (g *Generator) Next() (id ID, err error) {
	err = g.next(&id)
	return id, err
}

// next leaves so little to Next that the compiler puts that into its caller, and
// the id where it belongs: an array that is returned is copied.
func (g *Generator) next(id *ID) error {
	milli, first, err := g.core.One()
	if err == nil {
		id.set(milli, uint64(g.worker)<<16|uint64(first))
	}
	return err
}

// NextN fills dst with ids, ascending, a whole range at a time, waiting as
// [Generator.Next] does. It gives the number of ids filled in: less than len(dst)
// only with an error.
func (g *Generator) NextN(dst []ID) (int, error) { return g.NextContext(context.Background(), dst) }

// NextContext is [Generator.NextN] that gives up waiting once ctx is done, with
// its error.
func (g *Generator) NextContext(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		milli, first, n, err := g.core.Reserve(ctx, len(dst)-done)
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
// one. It waits as [Generator.Next] does, until ctx is done, and fails as it
// does.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	milli, first, count, err := g.core.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return Run{Make(milli, g.worker, uint16(first)), count}, nil
}

// Run is ids that follow each other by sequence: First and the Count-1 after it.
type Run struct {
	First ID
	Count int
}

// At gives the id at place i, 0 <= i < Count.
func (r Run) At(i int) ID {
	hi, lo := r.First.words()
	return fromWords(hi, lo+uint64(i))
}
