// Package tick is what all formats of ids share: time divided into ticks, a number of
// ids in each, and the rule that none is returned twice or ahead of the clock.
//
// A [Shape] is how a format divides time, a [Generator] returns ranges of the ids of a
// tick, and a [Limit] is the time that no id may be later than, which package durable
// moves ahead. All times are milliseconds since 1970-01-01 UTC, whatever a format's
// epoch and unit; a tick is identified by its start. The bits of an id, and the first
// sequence of a tick, are up to the format.
package tick

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
)

// Shape is how a format divides time into ticks.
type Shape struct {
	First   uint64 // the first tick: the format's epoch, a multiple of Unit
	Last    uint64 // the last tick of the format, at most MaxLast
	Unit    uint64 // length of a tick, a power of two
	PerTick int    // number of ids of a tick, 1 to MaxPerTick
}

// The generator's state is one word: the distance of the last tick from the first, in
// ms, and below it the number of its used ids.
const (
	closed = ^uint64(0) // the word of a closed generator

	// MaxPerTick is the maximum of Shape.PerTick.
	MaxPerTick = 1 << 22

	// MaxLast is the maximum of Shape.Last, in the year 6429.
	MaxLast = 1<<47 - 2
)

// usedBits is the number of bits of the word that count used ids: enough for one more
// than a tick has, which only the word of a closed generator has.
func (s Shape) usedBits() uint8 { return uint8(bits.Len(uint(s.PerTick) + 1)) }

// check returns an error if the word cannot hold the shape. Shapes are those of the
// formats, so users see this error only because of an epoch.
func (s Shape) check() error {
	switch {
	case bits.OnesCount64(s.Unit) != 1:
		return fmt.Errorf("flake: tick of %d ms, want a power of two", s.Unit)
	case s.PerTick < 1 || s.PerTick > MaxPerTick:
		return fmt.Errorf("flake: %d ids a tick, want 1 to %d", s.PerTick, MaxPerTick)
	case s.First%s.Unit != 0:
		return fmt.Errorf("flake: epoch at %d ms since 1970, want a multiple of the %d ms of a tick", s.First, s.Unit)
	case s.First > s.Last || s.Last > MaxLast:
		return fmt.Errorf("flake: ticks from %d to %d ms since 1970: the end must be at most %d", s.First, s.Last, uint64(MaxLast))
	case s.Last-s.First > closed>>s.usedBits():
		return fmt.Errorf("flake: %d ids a tick for %d ms, want at most %d ms", s.PerTick, s.Last-s.First, closed>>s.usedBits())
	}
	return nil
}

// The errors that a caller may branch on. Package flake documents them. The atom that an
// Erlang caller sees is in brackets.
var (
	ErrClockBackwards    = errors.New("flake: the clock is behind the last id (clock_running_backwards)")
	ErrClockAdvanced     = errors.New("flake: the clock is too far ahead of the last id (clock_advanced)")
	ErrTimestampNotSaved = errors.New("flake: the time cannot be saved (timestamp_not_saved)")
	ErrClosed            = errors.New("flake: the generator is closed")

	// ErrUsedUp: all ids of the tick are used, and the call does not wait.
	ErrUsedUp = errors.New("flake: the ids of this tick are used up")

	// ErrZero: the generator is nil, in a zero value of a format's generator.
	ErrZero = errors.New("flake: zero Generator; use NewGenerator or Open")
)

// Generator returns the ids of ticks: each above the last, never ahead of its clock. Any
// number of goroutines may use one; it takes no locks and allocates nothing. A nil one
// has no ids, and fails with [ErrZero].
type Generator struct {
	word   atomic.Uint64
	ended  atomic.Uint64 // the word before Close
	first  uint64        // Shape.First
	per    uint64        // Shape.PerTick
	bits   uint8         // number of bits of the word that count used ids
	mask   uint64        // these bits
	clock  Clock
	system *systemClock // the clock, if it is the machine's
	quick  bool         // whether system is set and a tick takes 1 ms
	limit  *Limit
	waits  atomic.Uint64
	shape  Shape
}

// New returns a generator that has made no ids. A nil clock means [SystemClock]. A shape
// that cannot be counted is an error.
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
	return &Generator{
		first: shape.First, per: uint64(shape.PerTick), bits: shape.usedBits(), mask: 1<<shape.usedBits() - 1,
		clock: clock, system: system, quick: system != nil && shape.Unit == 1,
		limit: limit, shape: shape,
	}
}

// tick returns the tick of a word, used the number of its used ids, and begin the word
// of a tick without used ids.
func (g *Generator) tick(word uint64) uint64   { return g.first + word>>(g.bits&63) }
func (g *Generator) used(word uint64) uint64   { return word & g.mask }
func (g *Generator) begin(milli uint64) uint64 { return (milli - g.first) << (g.bits & 63) }

// Successor returns a generator with the same shape and clock that returns only ids of
// ticks after that of last. It does not know the ids of g, and has a separate limit: a limit
// that can be raised must be raised before ids are made. It is for a format that tells ids
// made after the clock was set back from earlier ones by other bits; the caller must close
// g first.
func (g *Generator) Successor(last uint64) *Generator {
	limit := newLimit(g.limit.last)
	if limit.Extend = g.limit.Extend; limit.Extend != nil {
		limit.Set(last)
	}
	next := newGenerator(g.shape, g.clock, g.system, limit)
	next.Begin(last)
	return next
}

// Limit is the time that no id is later than: the last of the format, or a durable mark.
func (g *Generator) Limit() *Limit { return g.limit }

// Now returns the start of the clock's current tick.
func (g *Generator) Now() uint64 {
	if g == nil {
		return 0
	}
	return g.clock()
}

// Doubted is how far the machine's clock is ahead of the generator's, if it went too far
// ahead to be believed yet: see [Doubt].
func (g *Generator) Doubted() time.Duration {
	if g == nil || g.system == nil {
		return 0
	}
	return g.system.doubted()
}

// Last returns the last tick with ids, and the number of its used ids.
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

// Waits is the number of calls that waited because the ids of a tick were used up.
func (g *Generator) Waits() uint64 {
	if g == nil {
		return 0
	}
	return g.waits.Load()
}

// Ready returns nil if there is an id now, or the error of [Generator.Reserve].
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

// Reserve takes up to n ids of one tick, n at least 1. It returns the start of the tick,
// the index of the first of them, and their number. If all ids of the tick are used, it waits
// for the next tick, yielding the processor, until ctx is done. It fails with
// [ErrClockBackwards] while the clock is behind the last id, [ErrTimestampNotSaved],
// [ErrClosed], or the cause of ctx.
//
// The clock is read before the word, and other goroutines may move the word to a later
// tick in between. So if the clock seems behind, it is read again, after the word: only
// if it is still behind has it gone back.
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
				// The clock may have gone back, and the limit may be lower
				// than requested.
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

// One is [Generator.Reserve] of one id, the most frequent call. It has a fast path for
// the common case: the tick is the last one and has ids left, and the clock is the
// machine's, which is not compared with wall time during a tick.
func (g *Generator) One(ctx context.Context) (milli uint64, first int, err error) {
	if g == nil {
		return 0, 0, ErrZero
	}
	if c := g.system; g.quick {
		old, offset := g.word.Load(), c.offset.Load() // before the time, as in milli
		now := uint64(offset+int64(time.Since(c.base))) / uint64(time.Millisecond)
		if used := g.used(old); now-g.first == old>>(g.bits&63) && used < g.per && g.word.CompareAndSwap(old, old+1) {
			return now, int(used), nil
		}
	}
	milli, first, _, err = g.Reserve(ctx, 1)
	return milli, first, err
}

// TryReserve is like [Generator.Reserve] but does not wait: instead of waiting for the
// next tick it fails with [ErrUsedUp], and instead of waiting for the limit with [ErrTimestampNotSaved].
func (g *Generator) TryReserve(n int) (milli uint64, first, count int, err error) {
	return g.Reserve(impatient, n)
}

// impatient is done, and ErrUsedUp is its cause.
var impatient, _ = context.WithDeadlineCause(context.Background(), time.Time{}, ErrUsedUp)

func (g *Generator) behind(now uint64) error {
	if now < g.shape.First {
		return fmt.Errorf("%w: it is at %d ms since 1970, before the epoch, %d", ErrClockBackwards, now, g.shape.First)
	}
	return ErrClockBackwards
}

// raise asks for a limit of at least now.
func (g *Generator) raise(ctx context.Context, now uint64) error {
	switch {
	case now > g.shape.Last:
		return fmt.Errorf("flake: the clock, %d ms since 1970, is after the last time of ids, %d", now, g.shape.Last)
	case g.limit.Extend == nil:
		return ErrTimestampNotSaved
	}
	err := g.limit.Extend(ctx, now)
	if errors.Is(err, ErrUsedUp) { // the cause of impatient
		return ErrTimestampNotSaved
	}
	return err
}

// Begin restricts an unused generator to ids of ticks after that of last.
func (g *Generator) Begin(last uint64) {
	g.Resume(last, g.shape.PerTick)
}

// Resume restricts an unused generator to ids after the first used of the tick of last.
// If last is after the format's last tick there are none.
func (g *Generator) Resume(last uint64, used int) {
	last &^= g.shape.Unit - 1
	if last > g.shape.Last {
		last, used = g.shape.Last, g.shape.PerTick
	}
	if last >= g.first {
		g.word.Store(g.begin(last) | uint64(used))
	}
}

// Close closes the generator and returns its last tick; if it has made no ids, the one
// that it began at. A concurrent Reserve has either swapped the word before and is
// counted, or fails. Close must be called once.
func (g *Generator) Close() (last uint64) {
	if g == nil {
		return 0
	}
	for {
		word := g.word.Load()
		g.ended.Store(word) // before Last needs it
		if g.word.CompareAndSwap(word, closed) {
			return g.tick(word)
		}
	}
}

// PerTick is the number of ids per tick.
func (g *Generator) PerTick() int {
	if g == nil {
		return 0
	}
	return int(g.per)
}

// Limit is the time that no id may be later than. Once ids are made it only rises,
// except by [Generator.Lower].
type Limit struct {
	milli atomic.Uint64
	last  uint64

	// Extend raises the limit to a time, until ctx is done. nil means that the limit
	// is fixed. It must be set before the generator is used.
	Extend func(ctx context.Context, milli uint64) error
}

func newLimit(last uint64) *Limit {
	l := &Limit{last: last}
	l.milli.Store(last)
	return l
}

// Milli is the current limit.
func (l *Limit) Milli() uint64 { return l.milli.Load() }

// Last is the highest limit: the last tick of the format.
func (l *Limit) Last() uint64 { return l.last }

// Set sets the limit, to at most Last.
func (l *Limit) Set(milli uint64) { l.milli.Store(min(milli, l.last)) }

// Lower lowers the limit to milli, unless there are later ids: the clock was ahead, and
// the limit with it, but no ids were made. Only one goroutine at a time may change the
// limit.
func (g *Generator) Lower(milli uint64) {
	before := g.limit.Milli()
	if before <= milli {
		return
	}
	g.limit.Set(milli)
	if !g.touch(milli) {
		g.limit.Set(before)
	}
}

// touch changes the word. A concurrent Reserve that checked against the old limit still
// has to swap the old word, and now fails. No id is later than milli then. It reports
// false if there is a later id, or no id that it could skip.
func (g *Generator) touch(milli uint64) bool {
	for {
		old, now := g.word.Load(), g.clock()
		word := old + 1
		switch last := g.tick(old); {
		case old == closed || last > milli:
			return false
		case last < now && now <= milli:
			word = g.begin(now)
		case g.used(old) == g.per:
			return false
		}
		if g.word.CompareAndSwap(old, word) {
			return true
		}
	}
}

// maxNap limits one sleep, since the clock may be corrected, or the generator closed, in
// the meantime.
const maxNap = 100 * time.Millisecond

// Behind is how far the clock is behind the last id in ms, or 0 if it is not.
func (g *Generator) Behind() uint64 {
	if g == nil {
		return 0
	}
	last := g.word.Load()
	if last == closed {
		return 0
	}
	now := g.clock()
	return max(g.tick(last), now) - now
}

// Milliseconds returns n ms as a duration, limited to the longest one.
func Milliseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// Text returns a time in ms since 1970 as text, in UTC.
func Text(milli uint64) string {
	return time.UnixMilli(int64(min(milli, math.MaxInt64))).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Await sleeps until lag, in ms, is 0. If ctx is done first, it returns ctx's cause.
func Await(ctx context.Context, sleep Sleeper, lag func() uint64) error {
	for behind := lag(); behind > 0; behind = lag() {
		nap := min(behind, uint64(maxNap/time.Millisecond))
		if err := sleep(ctx, time.Duration(nap)*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Sleeper sleeps, or returns ctx's cause if ctx is done first. [Sleep] is the real one.
type Sleeper func(ctx context.Context, d time.Duration) error

func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
