// Package tick implements what all id formats share: time divided into ticks, a number of ids
// in each tick, and the rule that no id is a duplicate or ahead of the clock.
//
// A [Shape] describes how a format divides time, a [Generator] returns ranges of the ids of a
// tick, and a [Limit] is the latest time an id may have. Package durable moves limits ahead.
// All times are milliseconds since 1970-01-01 UTC, whatever a format's epoch and unit; a tick
// is identified by its start. The bits of an id, and the first sequence of a tick, are up to
// the format.
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

// Shape describes how a format divides time into ticks.
type Shape struct {
	First   uint64 // the first tick: the format's epoch, a multiple of Unit
	Last    uint64 // the last tick of the format, at most MaxLast
	Unit    uint64 // length of a tick in ms, 1 to MaxUnit
	PerTick int    // number of ids in a tick, 1 to MaxPerTick
}

// The generator's state is one word. Its high bits are the time from the first tick to the last
// tick with ids, in ms. Its low bits are the number of ids used in that last tick.
const (
	closed = ^uint64(0) // the word of a closed generator

	// MaxUnit is the maximum of Shape.Unit: marks move once a second.
	MaxUnit = 1000

	// MaxPerTick is the maximum of Shape.PerTick.
	MaxPerTick = 1 << 22

	// MaxLast is the maximum of Shape.Last, in the year 6429.
	MaxLast = 1<<47 - 2
)

// usedBits returns the number of bits of the word that count used ids. They can count one more
// than the ids in a tick, so the word of an open generator never equals closed.
func (s Shape) usedBits() uint8 { return uint8(bits.Len(uint(s.PerTick) + 1)) }

// check returns an error if the shape is invalid or the word cannot hold it. Formats define
// the shapes; users can cause this error only by configuring a wrong epoch.
func (s Shape) check() error {
	switch {
	case s.Unit < 1 || s.Unit > MaxUnit:
		return fmt.Errorf("flake: tick of %d ms: must be 1 to %d", s.Unit, MaxUnit)
	case s.PerTick < 1 || s.PerTick > MaxPerTick:
		return fmt.Errorf("flake: %d ids per tick: must be 1 to %d", s.PerTick, MaxPerTick)
	case s.First%s.Unit != 0:
		return fmt.Errorf("flake: epoch at %d ms since 1970: must be a multiple of the tick, %d ms", s.First, s.Unit)
	case s.First > s.Last || s.Last > MaxLast:
		return fmt.Errorf("flake: ticks from %d to %d ms since 1970: the end must be at most %d",
			s.First, s.Last, uint64(MaxLast))
	case s.Last-s.First > closed>>s.usedBits():
		return fmt.Errorf("flake: times span %d ms from the epoch; with %d ids per tick they can span at most %d ms",
			s.Last-s.First, s.PerTick, closed>>s.usedBits())
	}
	return nil
}

// These are the errors that a caller may branch on. Package flake documents them. Parentheses
// at the end of an error text contain the atom that an Erlang caller sees.
var (
	ErrClockBackwards    = errors.New("flake: the clock is behind the last id (clock_running_backwards)")
	ErrClockAdvanced     = errors.New("flake: the clock is too far ahead of the last id (clock_advanced)")
	ErrTimestampNotSaved = errors.New("flake: the time cannot be saved (timestamp_not_saved)")
	ErrClosed            = errors.New("flake: the generator is closed")

	// ErrUsedUp means that all ids of the tick are used, and that the call does not wait.
	ErrUsedUp = errors.New("flake: the ids of this tick are used up")

	// ErrZero means that the generator is nil, as in the zero value of a format's generator.
	ErrZero = errors.New("flake: zero Generator; use NewGenerator or Open")
)

// Generator returns the ids of ticks, each above the last and none ahead of the clock. Any
// number of goroutines may use a Generator; it takes no locks and allocates nothing. A nil
// Generator makes no ids: calls fail with [ErrZero].
type Generator struct {
	Sleep Sleeper // [Sleep], except in tests; set it before the generator is used

	word   atomic.Uint64
	ended  atomic.Uint64 // the last word before Close
	first  uint64        // Shape.First
	per    uint64        // Shape.PerTick
	bits   uint8         // number of bits of the word that count used ids
	mask   uint64        // the mask for these bits
	clock  Clock         // returns the start of the current tick
	fine   Clock         // returns the time
	system *systemClock  // set if fine is the machine's
	quick  bool          // whether system is set and a tick takes 1 ms
	limit  *Limit
	waits  atomic.Uint64
	shape  Shape
}

// New returns a generator that has made no ids. A nil clock means [SystemClock]. An invalid
// shape is an error.
func New(shape Shape, clock Clock) (*Generator, error) {
	if err := shape.check(); err != nil {
		return nil, err
	}
	var system *systemClock
	if clock == nil {
		system = newSystemClock()
		clock = system.milli
	}
	return newGenerator(shape, clock, system, newLimit(shape.Last)), nil
}

func newGenerator(shape Shape, fine Clock, system *systemClock, limit *Limit) *Generator {
	clock := fine
	if shape.Unit > 1 {
		clock = func() uint64 { return shape.start(fine()) }
	}
	return &Generator{
		Sleep: Sleep,
		first: shape.First, per: uint64(shape.PerTick), bits: shape.usedBits(), mask: 1<<shape.usedBits() - 1,
		clock: clock, fine: fine, system: system, quick: system != nil && shape.Unit == 1,
		limit: limit, shape: shape,
	}
}

// start returns the start of the tick at a time. Most units are powers of two, for which it need not
// divide.
func (s Shape) start(milli uint64) uint64 {
	if rest := s.Unit - 1; s.Unit&rest == 0 {
		return milli &^ rest
	}
	return milli - milli%s.Unit
}

// tick returns the tick in a word. used returns the number of used ids in a word. begin
// returns the word for a tick without used ids.
func (g *Generator) tick(word uint64) uint64   { return g.first + word>>(g.bits&63) }
func (g *Generator) used(word uint64) uint64   { return word & g.mask }
func (g *Generator) begin(milli uint64) uint64 { return (milli - g.first) << (g.bits & 63) }

// Successor returns a generator with the same shape and clock that returns only ids of ticks
// after that of last. The new generator does not know the ids of g. It has a separate limit;
// unless that limit is fixed, it must be raised before ids are made. Successor is for use after
// the clock was set back, in a format that distinguishes the new ids from earlier ones by other
// bits. Close g first.
func (g *Generator) Successor(last uint64) *Generator {
	limit := newLimit(g.limit.last)
	if limit.Extend = g.limit.Extend; limit.Extend != nil {
		limit.Set(last)
	}
	next := newGenerator(g.shape, g.fine, g.system, limit)
	next.Sleep = g.Sleep
	next.Begin(last)
	return next
}

// Limit returns the limit of ids: the last tick of the format, or a durable mark.
func (g *Generator) Limit() *Limit { return g.limit }

// Now returns the start of the clock's current tick.
func (g *Generator) Now() uint64 {
	if g == nil {
		return 0
	}
	return g.clock()
}

// Doubted returns how far the machine's clock is ahead of the generator's clock, while that is
// too far to be believed: see [Doubt]. Otherwise it returns 0.
func (g *Generator) Doubted() time.Duration {
	if g.system == nil {
		return 0
	}
	return g.system.doubted()
}

// Last returns the last tick with ids, and the number of ids used in it.
func (g *Generator) Last() (milli uint64, used int) {
	if g == nil {
		return 0, 0
	}
	word := g.word.Load()
	if word == closed {
		word = g.ended.Load()
	}
	return g.tick(word), int(min(g.used(word), g.per)) // Halt counts one more
}

// Waits returns the number of calls that waited because the ids of a tick were used up.
func (g *Generator) Waits() uint64 {
	if g == nil {
		return 0
	}
	return g.waits.Load()
}

// Ready returns nil if an id can be made now, or the error of [Generator.Reserve].
func (g *Generator) Ready() error {
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

// Reserve takes 1 to n ids of one tick. It returns the start of the tick, the index of the first
// id, and the number of ids. If all ids of the tick are used, it waits for the next tick until ctx is
// done. It fails with [ErrClockBackwards] while the clock is behind the
// last id; with [ErrTimestampNotSaved], [ErrClosed] or the cause of ctx; or if n is less than 1.
//
// The clock is read before the word. Between the two reads, other goroutines may move the word
// to a later tick. So if the clock seems behind, it is read again, after the word: the clock has
// gone back only if it is still behind.
func (g *Generator) Reserve(ctx context.Context, n int) (milli uint64, first, count int, err error) {
	return g.ReserveBelow(ctx, n, g.PerTick())
}

// ReserveBelow is like [Generator.Reserve], but takes only ids whose index in the tick is below
// end, which is from 1 to PerTick. If they are all used, it waits, even if other ids are left.
func (g *Generator) ReserveBelow(ctx context.Context, n, end int) (milli uint64, first, count int, err error) {
	if g == nil {
		return 0, 0, 0, ErrZero
	}
	if n < 1 {
		return 0, 0, 0, fmt.Errorf("flake: cannot reserve %d ids: must be at least 1", n)
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
				// The clock may have gone back, and the limit may be lower than requested.
				now = g.clock()
				continue
			}
			word = g.begin(now)
		}
		used := g.used(word)
		if used >= uint64(end) {
			if ctx.Err() != nil {
				return 0, 0, 0, context.Cause(ctx)
			}
			if !waited {
				waited = true
				g.waits.Add(1)
			}
			g.pause(ctx, now)
			now = g.clock()
			continue
		}
		got := min(uint64(n), uint64(end)-used)
		if g.word.CompareAndSwap(old, word+got) {
			return now, int(used), int(got), nil
		}
	}
}

// pause waits for a part of the rest of a tick. It sleeps until the tick's last millisecond, in which
// it only yields the processor, because a sleep would overshoot the next tick.
func (g *Generator) pause(ctx context.Context, milli uint64) {
	if g.shape.Unit > 1 {
		if spin, end := g.fine()+1, milli+g.shape.Unit; spin < end {
			g.Sleep(ctx, min(Milliseconds(end-spin), maxNap))
			return
		}
	}
	runtime.Gosched()
}

// One is like [Generator.Reserve] for one id, the most frequent request. It has a fast path
// for the common case: the clock is the machine's, and its current tick is the last tick with
// ids and has ids left. Within a tick, that clock need not be compared with wall time again.
func (g *Generator) One(ctx context.Context) (milli uint64, first int, err error) {
	if g == nil {
		return 0, 0, ErrZero
	}
	if c := g.system; g.quick {
		old, offset := g.word.Load(), c.offset.Load() // loaded before the time is read, as in milli
		now := uint64(offset+int64(time.Since(c.base))) / uint64(time.Millisecond)
		if used := g.used(old); now-g.first == old>>(g.bits&63) && used < g.per && g.word.CompareAndSwap(old, old+1) {
			return now, int(used), nil
		}
	}
	milli, first, _, err = g.Reserve(ctx, 1)
	return milli, first, err
}

// TryReserve is like [Generator.Reserve] but does not wait. Instead of waiting for the next
// tick, it fails with [ErrUsedUp]; instead of waiting for the limit, with
// [ErrTimestampNotSaved].
func (g *Generator) TryReserve(n int) (milli uint64, first, count int, err error) {
	return g.Reserve(impatient, n)
}

// impatient is a context that is done, with the cause ErrUsedUp.
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
		return fmt.Errorf("flake: the clock, %d ms since 1970, is after the latest time that an id can have, %d",
			now, g.shape.Last)
	case g.limit.Extend == nil:
		return ErrTimestampNotSaved
	}
	err := g.limit.Extend(ctx, now)
	if errors.Is(err, ErrUsedUp) { // the cause of impatient
		return ErrTimestampNotSaved
	}
	return err
}

// Begin makes an unused generator start after the tick of last.
func (g *Generator) Begin(last uint64) {
	g.Resume(last, g.shape.PerTick)
}

// Resume makes an unused generator continue in the tick of last, where the given number of ids is
// already used. If last is after the format's last tick, no ids are left.
func (g *Generator) Resume(last uint64, used int) {
	last = g.shape.start(last)
	if last > g.shape.Last {
		last, used = g.shape.Last, g.shape.PerTick
	}
	if last >= g.first {
		g.word.Store(g.begin(last) | uint64(used))
	}
}

// Close closes the generator. It returns the last tick with ids or, if there are no ids, the
// tick from Begin or Resume. A concurrent Reserve either swaps the word first, so that its ids
// count, or fails. Call Close only once.
func (g *Generator) Close() (last uint64) {
	for {
		word := g.word.Load()
		g.ended.Store(word) // before Last needs it
		if g.word.CompareAndSwap(word, closed) {
			return g.tick(word)
		}
	}
}

// PerTick returns the number of ids per tick.
func (g *Generator) PerTick() int {
	if g == nil {
		return 0
	}
	return int(g.per)
}

// Limit is the latest time an id may have. Once ids are made, only [Generator.Lower] lowers it.
type Limit struct {
	milli atomic.Uint64
	last  uint64

	// Extend raises the limit to milli, and gives up when ctx is done. A nil Extend means that
	// the limit is fixed. Set Extend before the generator is used.
	Extend func(ctx context.Context, milli uint64) error
}

func newLimit(last uint64) *Limit {
	l := &Limit{last: last}
	l.milli.Store(last)
	return l
}

// Milli returns the current limit.
func (l *Limit) Milli() uint64 { return l.milli.Load() }

// Last returns the highest possible limit, the last tick of the format.
func (l *Limit) Last() uint64 { return l.last }

// Set sets the limit to milli, or to Last if that is lower.
func (l *Limit) Set(milli uint64) { l.milli.Store(min(milli, l.last)) }

// Lower lowers the limit to milli, unless there are later ids. It is for a clock that was ahead
// and was corrected: the limit followed the clock ahead, but no ids were made then. Only one
// goroutine at a time may change the limit.
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

// touch changes the word. A concurrent Reserve that checked against the old limit has yet to
// swap the old word. That swap now fails, so no id becomes later than milli. touch returns
// false if there is already a later id, or if there is no id to skip.
func (g *Generator) touch(milli uint64) bool {
	for {
		old, now := g.word.Load(), g.clock()
		word := old + 1
		switch last := g.tick(old); {
		case old == closed || last > milli:
			return false
		case last < now && now <= milli:
			word = g.begin(now)
		case g.used(old) >= g.per:
			return false
		}
		if g.word.CompareAndSwap(old, word) {
			return true
		}
	}
}

// Halt ends ids at once: it sets the limit to 0, and uses up the tick of the last id. Like Lower, it
// changes the word, so that a concurrent Reserve that checked against the old limit fails too.
func (g *Generator) Halt() {
	g.limit.Set(0)
	for {
		old := g.word.Load()
		if old == closed || g.word.CompareAndSwap(old, old-g.used(old)+g.per+1) {
			return
		}
	}
}

// maxNap limits each sleep, because the clock may be corrected or the generator closed during
// it.
const maxNap = 100 * time.Millisecond

// Behind returns how far the clock is behind the last id in ms, or 0 if it is not behind.
func (g *Generator) Behind() uint64 {
	last := g.word.Load()
	if last == closed {
		return 0
	}
	now := g.clock()
	return max(g.tick(last), now) - now
}

// Milliseconds returns n ms as a duration, or the longest possible duration if n is too large.
func Milliseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// Text formats a time in ms since 1970, in UTC.
func Text(milli uint64) string {
	return time.UnixMilli(int64(min(milli, math.MaxInt64))).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Await sleeps until lag, which returns ms, returns 0. If ctx is done first, Await returns ctx's
// cause.
func Await(ctx context.Context, sleep Sleeper, lag func() uint64) error {
	for behind := lag(); behind > 0; behind = lag() {
		nap := min(behind, uint64(maxNap/time.Millisecond))
		if err := sleep(ctx, time.Duration(nap)*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Sleeper sleeps for d, or returns ctx's cause if ctx is done first. [Sleep] is the real one.
type Sleeper func(ctx context.Context, d time.Duration) error

func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
