package halves

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// ID is the ids of a format.
type ID[T any] interface {
	~[16]byte
	Plus(i int) T
}

// Generator hands out ids: each higher than the last, never ahead of its clock, at most
// 65,536 a millisecond of ULIDs and 4,096 of UUIDs, up to the year 6429. Any number of
// goroutines may use one; it takes no locks and allocates nothing. The zero value has no
// ids: Next and the like fail.
type Generator[T ID[T]] struct {
	core      durable.Core[*tick.Generator]
	worker    flake.Worker
	high, low uint64 // what all ids have alike
	random    uint64 // the bits that are
}

// New returns a generator that keeps nothing.
func New[T ID[T]](l Layout, worker flake.Worker, o flake.Options) (*Generator[T], error) {
	if worker > flake.MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << l.Sequence}, o.Clock)
	if err != nil {
		return nil, err
	}
	g := &Generator[T]{worker: worker, high: l.High, low: l.low(worker), random: 1<<l.Random - 1}
	g.core.Source = ids
	return g, nil
}

// Open returns a generator that keeps its time in a file.
func Open[T ID[T]](ctx context.Context, path string, l Layout, worker flake.Worker, o flake.Options) (*Generator[T], error) {
	g, err := New[T](l, worker, o)
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

// Fresh returns a function that returns ids of a worker that is made up when it is first
// called, and of a clock that is never set back.
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
		if err != nil { // never, with this clock
			panic(err)
		}
		return id
	}
}

// Close ends the generator: calls under way and later fail with [flake.ErrClosed]. One
// of a file brings its mark back from ahead of the clock, as
// [flake.Generator] does. A second Close returns what the first did.
func (g *Generator[T]) Close() error { return g.core.Close() }

// Next returns the next id. When those of a millisecond are used it waits for the next
// one, yielding the processor, until ctx is done; that is an error with its cause. It
// fails with [flake.ErrClockBackwards] while the clock is behind the last id,
// [flake.ErrTimestampNotSaved] or [flake.ErrClosed].
func (g *Generator[T]) Next(ctx context.Context) (id T, err error) {
	err = g.next(ctx, &id)
	return id, err
}

// next leaves so little to Next that the compiler puts that into its caller.
func (g *Generator[T]) next(ctx context.Context, id *T) error {
	milli, used, err := g.core.Source.One(ctx)
	if err == nil {
		g.set(id, milli, used)
	}
	return err
}

// set makes an id. Each thread of Go's has a ChaCha8 of its own, seeded by the system: so
// random bits take no lock.
func (g *Generator[T]) set(id *T, milli uint64, sequence int) {
	set(id, milli<<16|g.high|uint64(sequence), g.low|rand.Uint64()&g.random)
}

// NextN fills dst with ids, ascending, a whole range at a time, waiting and failing
// as [Generator.Next] does. It returns the number of ids filled in: less than
// len(dst) only with an error.
func (g *Generator[T]) NextN(ctx context.Context, dst []T) (int, error) {
	done := 0
	for done < len(dst) {
		milli, used, n, err := g.core.Source.Reserve(ctx, len(dst)-done)
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

// Reserve takes up to n ids of one millisecond, n at least 1, at the price of
// one. It waits and fails as [Generator.Next] does.
func (g *Generator[T]) Reserve(ctx context.Context, n int) (r flake.RunOf[T], err error) {
	if n < 1 {
		return r, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	milli, used, count, err := g.core.Source.Reserve(ctx, n)
	if err == nil {
		g.set(&r.First, milli, used)
	}
	r.Count = count
	return r, err
}

// CatchUp waits, asleep, until the clock is no longer behind: what to do after
// [flake.ErrClockBackwards]. It fails with the cause of ctx when that is done first.
func (g *Generator[T]) CatchUp(ctx context.Context) error { return g.core.CatchUp(ctx) }

// Ready returns nil if there are ids now, and the file, if there is one, can be
// written, without which there soon are none. Otherwise it fails as Next would, or
// says what the trouble with the file is.
func (g *Generator[T]) Ready() error { return g.core.Ready() }

// Behind is how far the clock is behind the last id: how long it takes at least
// until there are ids again. 0: it is not.
func (g *Generator[T]) Behind() time.Duration { return g.core.Behind() }

// Worker is the worker of every id of the generator.
func (g *Generator[T]) Worker() flake.Worker { return g.worker }

// PerTick is how many ids there are a millisecond.
func (g *Generator[T]) PerTick() int { return g.core.Source.PerTick() }

// Waits is how often a call found the ids of a millisecond used up, and waited.
func (g *Generator[T]) Waits() uint64 { return g.core.Source.Waits() }

// Last is the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id that is used up: no later one was handed out.
func (g *Generator[T]) Last() (milli uint64, sequence uint16) {
	milli, used := g.core.Source.Last()
	return milli, uint16(max(used, 1) - 1)
}

// Mark is the time that no id is later than, as it stands in the file; the zero time
// without a file.
func (g *Generator[T]) Mark() time.Time { return g.core.Mark() }

// LastSaved is the time at which the file was last written, and the trouble there
// has been with it since, or nil. It is the zero time without a file.
func (g *Generator[T]) LastSaved() (time.Time, error) { return g.core.LastSaved() }
