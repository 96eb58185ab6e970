package tick

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Generator hands out the ids of ticks: each above the last, never ahead of its
// clock. Any number of goroutines may use one; it takes no locks and allocates
// nothing. A nil one has no ids, and fails with [ErrZero].
type Generator struct {
	word   atomic.Uint64
	ended  atomic.Uint64 // the word that Close put an end to
	first  uint64        // Shape.First
	per    uint64        // Shape.PerTick
	bits   uint8         // of the word that count used ids
	mask   uint64        // the same
	clock  Clock
	system *systemClock // the clock, if it is the machine's
	quick  bool         // and a tick takes 1 ms
	limit  *Limit
	waits  atomic.Uint64
	shape  Shape
}

// New returns a generator that starts from nothing. A nil clock means
// [SystemClock]. A shape that cannot be counted is an error.
func New(shape Shape, clock Clock) (*Generator, error) {
	if err := shape.check(); err != nil {
		return nil, err
	}
	var system *systemClock
	if clock == nil {
		system = newSystemClock()
		clock = system.milli
	}
	if rest := shape.Unit - 1; rest != 0 {
		fine := clock
		clock = func() uint64 { return fine() &^ rest }
	}
	return newGenerator(shape, clock, system, newLimit(shape.Last)), nil
}

func newGenerator(shape Shape, clock Clock, system *systemClock, limit *Limit) *Generator {
	g := &Generator{
		first: shape.First, per: uint64(shape.PerTick), bits: shape.usedBits(), mask: 1<<shape.usedBits() - 1,
		clock: clock, system: system, quick: system != nil && shape.Unit == 1,
		limit: limit, shape: shape,
	}
	return g
}

// tick returns the tick of a word, used how many of its ids are used, and begin the
// word of a tick of which none are.
func (g *Generator) tick(word uint64) uint64   { return g.first + word>>(g.bits&63) }
func (g *Generator) used(word uint64) uint64   { return word & g.mask }
func (g *Generator) begin(milli uint64) uint64 { return (milli - g.first) << (g.bits & 63) }

// Successor returns a generator with the same shape and clock that knows of no id
// of g's, and hands out only ids of later ticks than that of last. Its limit is
// its own: one that can be raised has to be, before there are ids. It is for a
// format that tells its ids from those before it by other bits, when the clock
// was set back: g is to be closed first.
func (g *Generator) Successor(last uint64) *Generator {
	limit := newLimit(g.limit.last)
	if limit.Extend = g.limit.Extend; limit.Extend != nil {
		limit.Set(last)
	}
	next := newGenerator(g.shape, g.clock, g.system, limit)
	next.Begin(last)
	return next
}

// Limit is the time that no id is later than: the last that fits, unless a
// durable mark sets it.
func (g *Generator) Limit() *Limit { return g.limit }

// Now reads the clock: when the tick began that it is in.
func (g *Generator) Now() uint64 {
	if g == nil {
		return 0
	}
	return g.clock()
}

// Doubted tells how far ahead of the clock the machine's is, if that has gone too
// far ahead to be believed yet: see [Doubt].
func (g *Generator) Doubted() time.Duration {
	if g == nil || g.system == nil {
		return 0
	}
	return g.system.doubted()
}

// Last returns the last tick of which ids were handed out, and how many: no later
// id was.
func (g *Generator) Last() (milli uint64, used int) {
	if g == nil {
		return 0, 0
	}
	word := g.word.Load()
	if word == closed {
		word = g.ended.Load()
	}
	return g.tick(word), int(g.used(word))
}

// Waits is how often a caller found all ids of a tick used, and waited.
func (g *Generator) Waits() uint64 {
	if g == nil {
		return 0
	}
	return g.waits.Load()
}

// Ready tells whether an id could be handed out now, or else fails as
// [Generator.Reserve] would.
func (g *Generator) Ready() error {
	if g == nil {
		return ErrZero
	}
	word := g.word.Load()
	now := g.clock()
	switch {
	case word == closed:
		return ErrClosed
	case now < g.tick(word):
		return g.behind(now)
	case now > g.limit.Milli():
		return g.raise(context.Background(), now)
	}
	return nil
}

// Reserve takes up to n ids of one tick, those from first on, n at least 1. It
// returns when the tick began and how many they are. If all of a tick are used it
// waits for the next one, yielding the processor, until ctx is done. It fails
// with [ErrClockBackwards] while the clock is behind the last id,
// [ErrTimestampNotSaved], [ErrClosed], or ctx's cause.
//
// The clock is read before the word, and between the two other goroutines may
// have moved the word to a later tick. So a clock that seems behind is read
// again, after the word: only if it is still behind has it gone back.
func (g *Generator) Reserve(ctx context.Context, n int) (milli uint64, first, count int, err error) {
	if g == nil {
		return 0, 0, 0, ErrZero
	}
	waited := false
	now := g.clock()
	for {
		old := g.word.Load()
		if old == closed {
			return 0, 0, 0, ErrClosed
		}
		last := g.tick(old)
		if now < last {
			if now = g.clock(); now < last {
				return 0, 0, 0, g.behind(now)
			}
		}
		word := old
		if now > last {
			if now > g.limit.Milli() {
				if err := g.raise(ctx, now); err != nil {
					return 0, 0, 0, err
				}
				// The clock may have gone back meanwhile, and the limit have
				// been raised to less than was asked for.
				now = g.clock()
				continue
			}
			word = g.begin(now)
		}
		used := g.used(word)
		if used == g.per {
			if ctx.Err() != nil {
				return 0, 0, 0, context.Cause(ctx)
			}
			if !waited {
				waited = true
				g.waits.Add(1)
			}
			runtime.Gosched() // sleeping would overshoot the next tick
			now = g.clock()
			continue
		}
		got := min(uint64(n), g.per-used)
		if g.word.CompareAndSwap(old, word+got) {
			return now, int(used), int(got), nil
		}
	}
}

// One is [Generator.Reserve] of one id. It is what is called most, and so has a way of its own through what happens most: the tick
// is the last one, has ids left, and the clock is the machine's, which while a
// tick lasts is not compared with wall time.
func (g *Generator) One(ctx context.Context) (milli uint64, first int, err error) {
	if g == nil {
		return 0, 0, ErrZero
	}
	if c := g.system; g.quick {
		old, offset := g.word.Load(), c.offset.Load() // before the time: see milli
		now := uint64(offset+int64(time.Since(c.base))) / uint64(time.Millisecond)
		if used := g.used(old); now-g.first == old>>(g.bits&63) && used < g.per && g.word.CompareAndSwap(old, old+1) {
			return now, int(used), nil
		}
	}
	milli, first, _, err = g.Reserve(ctx, 1)
	return milli, first, err
}

// TryReserve is [Generator.Reserve] that does not wait: for the next tick it
// fails with [ErrUsedUp], for the limit with [ErrTimestampNotSaved].
func (g *Generator) TryReserve(n int) (milli uint64, first, count int, err error) {
	return g.Reserve(impatient, n)
}

var impatient = makeImpatient()

func makeImpatient() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrUsedUp)
	return ctx
}

func (g *Generator) behind(now uint64) error {
	if now < g.shape.First {
		return fmt.Errorf("%w: it gives %d ms since 1970, before the epoch, %d", ErrClockBackwards, now, g.shape.First)
	}
	return ErrClockBackwards
}

// raise asks for the limit to be raised to now.
func (g *Generator) raise(ctx context.Context, now uint64) error {
	switch {
	case now > g.shape.Last:
		return fmt.Errorf("flake: the clock gives %d ms since 1970, beyond the last that fits, %d", now, g.shape.Last)
	case g.limit.Extend == nil:
		return ErrTimestampNotSaved
	}
	err := g.limit.Extend(ctx, now)
	if errors.Is(err, ErrUsedUp) { // it is ctx's cause
		return ErrTimestampNotSaved
	}
	return err
}

// Begin sets the generator up to hand out only ids of later ticks than that of
// last, before it is used.
func (g *Generator) Begin(last uint64) {
	g.Resume(last, g.shape.PerTick)
}

// Resume sets the generator up to hand out only ids later than the first used of
// the tick of last, before it is used. After a time that does not fit there are none.
func (g *Generator) Resume(last uint64, used int) {
	last &^= g.shape.Unit - 1
	if last > g.shape.Last {
		last, used = g.shape.Last, g.shape.PerTick
	}
	if last >= g.first {
		g.word.Store(g.begin(last) | uint64(used))
	}
}

// Close ends the generator and returns the last tick it used; if it used none, the
// one it began at. Whoever is in Reserve has either swapped the word before, and
// is counted, or fails to. It is called once.
func (g *Generator) Close() (last uint64) {
	if g == nil {
		return 0
	}
	for {
		word := g.word.Load()
		g.ended.Store(word) // before it can be asked for
		if g.word.CompareAndSwap(word, closed) {
			return g.tick(word)
		}
	}
}

// PerTick is how many ids a tick has.
func (g *Generator) PerTick() int {
	if g == nil {
		return 0
	}
	return int(g.per)
}
