package flake

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
)

// The generator's one word: the last millisecond, and below it how many of its
// ids are used, 0 to 65,536.
const (
	usedBits = 17
	perMilli = 1 << 16
	usedMask = 1<<usedBits - 1

	closed   = ^uint64(0)           // the word of a generator that has ended
	maxMilli = closed>>usedBits - 1 // the last millisecond, in the year 6429
)

// Generator hands out ids: each higher than the last, never ahead of its clock,
// at most 65,536 a millisecond. Any number of goroutines may use one; it takes
// no locks and allocates nothing.
type Generator struct {
	worker Worker
	clock  Clock

	word  atomic.Uint64
	limit atomic.Uint64 // no id of a later millisecond is handed out; only rises

	// extend is asked to raise the limit to a millisecond; nil: it stays.
	extend func(milli uint64) error
}

// NewGenerator gives a generator that starts from nothing: that no earlier one
// with this worker has handed out ids of this time is the caller's to know (or
// use [Open]). A nil clock means [SystemClock]. A worker above [MaxWorker] is
// an error.
func NewGenerator(worker Worker, clock Clock) (*Generator, error) {
	if worker > MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	if clock == nil {
		clock = SystemClock()
	}
	g := &Generator{worker: worker, clock: clock}
	g.limit.Store(maxMilli)
	return g, nil
}

// Worker is the worker of every id of the generator.
func (g *Generator) Worker() Worker { return g.worker }

// Last gives the time and sequence that are used up: no later id was handed out.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	word := g.word.Load()
	return word >> usedBits, uint16(max(word&usedMask, 1) - 1)
}

// Next gives the next id. When the 65,536 of a millisecond are used it waits
// for the next one, yielding the processor. It fails with [ErrClockBackwards]
// while the clock is behind the last id, [ErrTimestampNotSaved] or [ErrClosed].
func (g *Generator) Next() (ID, error) {
	word, _, err := g.reserve(context.Background(), 1)
	if err != nil {
		return ID{}, err
	}
	return Make(word>>usedBits, g.worker, uint16(word)), nil
}

// NextN fills dst with ids, ascending, a whole range at a time, waiting as
// [Generator.Next] does. It gives the number of ids filled in: less than len(dst)
// only with an error.
func (g *Generator) NextN(dst []ID) (int, error) { return g.fill(context.Background(), dst) }

// NextContext is [Generator.NextN] that gives up waiting once ctx is done, with
// its error.
func (g *Generator) NextContext(ctx context.Context, dst []ID) (int, error) {
	return g.fill(ctx, dst)
}

func (g *Generator) fill(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		word, n, err := g.reserve(ctx, min(len(dst)-done, perMilli))
		if err != nil {
			return done, err
		}
		for i := range n {
			dst[done+i] = Make(word>>usedBits, g.worker, uint16(word)+uint16(i))
		}
		done += n
	}
	return done, nil
}

// reserve takes up to n ids of one millisecond, 1 <= n <= 65,536. It gives the
// word they start from and how many they are.
//
// The clock is read before the word, and between the two other goroutines may
// have moved the word to a later millisecond. So a clock that seems behind is
// read again, after the word: only if it is still behind has it gone back.
func (g *Generator) reserve(ctx context.Context, n int) (word uint64, got int, err error) {
	now := g.clock()
	for {
		old := g.word.Load()
		if old == closed {
			return 0, 0, ErrClosed
		}
		last := old >> usedBits
		if now < last {
			if now = g.clock(); now < last {
				return 0, 0, ErrClockBackwards
			}
		}
		word = old
		if now > last {
			if now > g.limit.Load() {
				if err := g.raise(now); err != nil {
					return 0, 0, err
				}
				// The clock may have gone back meanwhile, and the limit have
				// been raised to less than was asked for.
				now = g.clock()
				continue
			}
			word = now << usedBits
		}
		used := int(word & usedMask)
		if used == perMilli {
			if err := yield(ctx); err != nil {
				return 0, 0, err
			}
			now = g.clock()
			continue
		}
		got = min(n, perMilli-used)
		if g.word.CompareAndSwap(old, word+uint64(got)) {
			return word, got, nil
		}
	}
}

// raise asks for the limit to be raised to now.
func (g *Generator) raise(now uint64) error {
	switch {
	case now > maxMilli:
		return fmt.Errorf("flake: the clock gives %d ms since 1970, beyond the last that fits, %d", now, uint64(maxMilli))
	case g.extend == nil:
		return ErrTimestampNotSaved
	}
	return g.extend(now)
}

// start sets the generator up to hand out only ids of later milliseconds than
// last, and none later than limit.
func (g *Generator) start(last, limit uint64) {
	g.word.Store(last<<usedBits | perMilli)
	g.limit.Store(limit)
}

// close ends the generator and gives the last millisecond it used. Whoever is
// in reserve has either swapped the word before, and is counted, or fails to.
func (g *Generator) close() (last uint64) {
	return g.word.Swap(closed) >> usedBits
}

// yield lets others run until the next millisecond. Sleeping would overshoot it.
func yield(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	runtime.Gosched()
	return nil
}
