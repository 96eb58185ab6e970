package halves

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Generator is what generators of the ids are made of. Its methods are those of
// [flake.Generator], which documents them. The zero value has no ids.
type Generator[ID ~[16]byte] struct {
	durable.Core[*tick.Generator]
	worker    flake.Worker
	high, low uint64 // what all ids have alike
	random    uint64 // the bits that are
}

// Init sets up a generator that keeps nothing.
func (g *Generator[ID]) Init(l Layout, worker flake.Worker, o flake.Options) error {
	if worker > flake.MaxWorker {
		return fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << l.Sequence}, o.Clock)
	if err != nil {
		return err
	}
	g.Source, g.worker, g.high, g.low, g.random = ids, worker, l.High, l.low(worker), 1<<l.Random-1
	return nil
}

// Open sets up a generator that keeps its time in a file.
func (g *Generator[ID]) Open(ctx context.Context, path string, l Layout, worker flake.Worker, o flake.Options) error {
	if err := g.Init(l, worker, o); err != nil {
		return err
	}
	return g.Core.Open(ctx, path, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved, Marks: o.Marks, Bound: o.Bound,
	})
}

// set makes an id. Each thread of Go's has a ChaCha8 of its own, seeded by the system: so
// random bits take no lock.
func (g *Generator[ID]) set(id *ID, milli uint64, sequence int) {
	set(id, milli<<16|g.high|uint64(sequence), g.low|rand.Uint64()&g.random)
}

func (g *Generator[ID]) Next(ctx context.Context, id *ID) error {
	milli, used, err := g.Source.One(ctx)
	if err == nil {
		g.set(id, milli, used)
	}
	return err
}

func (g *Generator[ID]) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		milli, used, n, err := g.Source.Reserve(ctx, len(dst)-done)
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

func (g *Generator[ID]) Reserve(ctx context.Context, n int) (first ID, count int, err error) {
	if n < 1 {
		return first, 0, fmt.Errorf("flake: %d ids cannot be reserved, only 1 or more", n)
	}
	milli, used, count, err := g.Source.Reserve(ctx, n)
	if err == nil {
		g.set(&first, milli, used)
	}
	return first, count, err
}

func (g *Generator[ID]) Worker() flake.Worker { return g.worker }
func (g *Generator[ID]) PerTick() int         { return g.Source.PerTick() }
func (g *Generator[ID]) Waits() uint64        { return g.Source.Waits() }

func (g *Generator[ID]) Last() (milli uint64, sequence uint16) {
	milli, used := g.Source.Last()
	return milli, uint16(max(used, 1) - 1)
}

// Fresh returns a function that returns ids of a worker that is made up when it is first
// called, and of a clock that is never set back.
func Fresh[ID ~[16]byte](l Layout) func() ID {
	standard := sync.OnceValue(func() *Generator[ID] {
		g := new(Generator[ID])
		if err := g.Init(l, flake.RandomWorker(), flake.Options{Clock: tick.ForwardClock()}); err != nil {
			panic(err)
		}
		return g
	})
	return func() (id ID) {
		if err := standard().Next(context.Background(), &id); err != nil { // never, with this clock
			panic(err)
		}
		return id
	}
}
