package tick

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// handClock is a clock that is set by hand.
type handClock struct{ milli uint64 }

func (c *handClock) now() uint64 { return c.milli }

// whole has the longest range of times, and wide the most ids per tick. narrow, like some formats,
// uses only part of the word.
var (
	whole  = Shape{Last: MaxLast, Unit: 1, PerTick: 1 << 16}
	wide   = Shape{First: 1000, Last: 1000 + 1<<41 - 1, Unit: 1, PerTick: MaxPerTick}
	narrow = Shape{First: 1000, Last: 1100, Unit: 4, PerTick: 3}
)

func newTest(t *testing.T, shape Shape, clock Clock) *Generator {
	t.Helper()
	g, err := New(shape, clock)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type run struct {
	milli        uint64
	first, count int
}

func (g *Generator) try(n int) (run, error) {
	milli, first, count, err := g.TryReserve(n)
	return run{milli, first, count}, err
}

func take(t *testing.T, g *Generator, n int) run {
	t.Helper()
	r, err := g.try(n)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReserve(t *testing.T) {
	clock := &handClock{}
	g := newTest(t, narrow, clock.now)
	for _, c := range []struct {
		clock uint64
		n     int
		want  run
		err   error
	}{
		{999, 1, run{}, ErrClockBackwards},
		{1000, 1, run{1000, 0, 1}, nil},
		{1001, 1, run{1000, 1, 1}, nil},
		{1003, 5, run{1000, 2, 1}, nil},
		{1003, 1, run{}, ErrUsedUp},
		{1004, math.MaxInt, run{1004, 0, 3}, nil},
		{1000, 1, run{}, ErrClockBackwards},
		{1007, 1, run{}, ErrUsedUp},
		{1003, 1, run{}, ErrClockBackwards},
		{1103, 2, run{1100, 0, 2}, nil},
		{1103, 2, run{1100, 2, 1}, nil},
	} {
		clock.milli = c.clock
		got, err := g.try(c.n)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d ids at %d: %v, %v, want %v, %v", c.n, c.clock, got, err, c.want, c.err)
		}
		if early := c.clock < narrow.First; early != strings.Contains(fmt.Sprint(err), "before the epoch") {
			t.Errorf("at %d: %v", c.clock, err)
		}
	}
	for _, late := range []uint64{1104, MaxLast, 1<<64 - 1} {
		clock.milli = late
		if got, err := g.try(1); err == nil {
			t.Errorf("beyond the last tick, at %d: %v", late, got)
		}
	}
	for _, n := range []int{0, -1} {
		if got, err := g.try(n); got != (run{}) || !strings.Contains(fmt.Sprint(err), "must be at least 1") {
			t.Errorf("%d ids: %v, %v", n, got, err)
		}
	}
	if milli, used := g.Last(); milli != 1100 || used != 3 || g.Waits() != 0 {
		t.Errorf("the last is %d:%d, after %d waits", milli, used, g.Waits())
	}
}

// Reserve sleeps until the last millisecond of a tick, and then reads the clock.
func TestReserveWaits(t *testing.T) {
	for _, unit := range []uint64{1, 2, 4, 10, 1000} {
		var now, slept time.Duration
		reads := 0
		g := newTest(t, Shape{First: 1000, Last: MaxLast, Unit: unit, PerTick: 3}, func() uint64 {
			reads++
			now += 100 * time.Microsecond // a read takes this long
			return 1000 + uint64(now/time.Millisecond)
		})
		g.Sleep = func(ctx context.Context, d time.Duration) error {
			if now, slept = now+d, slept+d; d > maxNap || d <= 0 {
				t.Errorf("unit %d: a nap of %v", unit, d)
			}
			return context.Cause(ctx)
		}
		const ticks = 20
		for i := range uint64(ticks) {
			milli, first, count, err := g.Reserve(t.Context(), 3)
			if want := (run{1000 + unit*i, 0, 3}); want != (run{milli, first, count}) || err != nil {
				t.Fatalf("unit %d: %d:%d, %d ids, %v, want %v", unit, milli, first, count, err, want)
			}
		}
		if g.Waits() != ticks-1 {
			t.Errorf("unit %d: %d waits", unit, g.Waits())
		}
		const spun = 40 + 2*MaxUnit/100 // for each tick, 10 reads per millisecond, and 2 for each nap
		if awake := now - slept; reads > ticks*spun || (unit == 1) != (slept == 0) {
			t.Errorf("unit %d: %d reads in %v, and %v asleep", unit, reads, awake, slept)
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, _, _, err := g.Reserve(ctx, 1); !errors.Is(err, why) {
			t.Errorf("unit %d: with a context that is done: %v", unit, err)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		sleep := g.Sleep
		g.Sleep = func(ctx context.Context, d time.Duration) error {
			cancel(why)
			return sleep(ctx, d)
		}
		g.Reserve(ctx, 3)
		if _, _, _, err := g.Reserve(ctx, 3); (unit > 1) != errors.Is(err, why) {
			t.Errorf("unit %d: canceled in a nap: %v", unit, err)
		}
	}
}

// A tick begins at a multiple of its unit, whether that is a power of two or not.
func TestUnits(t *testing.T) {
	for _, unit := range []uint64{1, 3, 4, 10, 512, MaxUnit} {
		first := 7 * unit
		clock := &handClock{}
		g := newTest(t, Shape{First: first, Last: first + 100*unit, Unit: unit, PerTick: 1}, clock.now)
		for _, c := range []struct{ clock, want uint64 }{
			{first, first}, {first + 2*unit - 1, first + unit}, {first + 2*unit, first + 2*unit},
			{first + 101*unit - 1, first + 100*unit},
		} {
			clock.milli = c.clock
			if r := take(t, g, 1); r.milli != c.want || g.Now() != c.want {
				t.Errorf("unit %d: %v at %d, want %d", unit, r, c.clock, c.want)
			}
		}
		resumed := newTest(t, g.shape, clock.now)
		if resumed.Begin(first + 2*unit - 1); resumed.tick(resumed.word.Load()) != first+unit {
			t.Errorf("unit %d: begun after %d", unit, resumed.tick(resumed.word.Load()))
		}
	}
}

// One follows the machine's clock, whether a tick takes one millisecond or several.
func TestOne(t *testing.T) {
	for _, shape := range []Shape{whole, wide, {Last: MaxLast, Unit: 4, PerTick: 1000},
		{Last: MaxLast, Unit: 1, PerTick: 10}} {
		g := newTest(t, shape, nil)
		var last run
		for range min(100_000, 100*shape.PerTick) {
			before := g.Now()
			milli, first, err := g.One(t.Context())
			if err != nil || milli < before || milli > g.Now() || milli%shape.Unit != 0 || first >= shape.PerTick {
				t.Fatalf("%d:%d, %v, between %d and %d", milli, first, err, before, g.Now())
			}
			if milli == last.milli && first != last.first+1 || milli != last.milli && first != 0 || milli < last.milli {
				t.Fatalf("%d:%d after %d:%d", milli, first, last.milli, last.first)
			}
			last = run{milli, first, 1}
		}
	}
}

// One also works with a clock that is not the machine's.
func TestOneOfAnotherClock(t *testing.T) {
	g := newTest(t, whole, (&handClock{1000}).now)
	for want := range 3 {
		if milli, first, err := g.One(t.Context()); milli != 1000 || first != want || err != nil {
			t.Errorf("%d:%d, %v", milli, first, err)
		}
	}
}

// The time of the first id is right, although nothing has read the clock before.
func TestFirstOne(t *testing.T) {
	before := uint64(time.Now().UnixMilli())
	for range 100 {
		if milli, _, err := newTest(t, whole, nil).One(t.Context()); milli < before || err != nil {
			t.Fatalf("%d, %v", milli, err)
		}
	}
}

func TestSmallestShape(t *testing.T) {
	g := newTest(t, Shape{First: 1000, Last: 1000, Unit: 1, PerTick: 1}, func() uint64 { return 1000 })
	if r := take(t, g, 2); r != (run{1000, 0, 1}) || g.PerTick() != 1 {
		t.Errorf("%v of %d", r, g.PerTick())
	}
}

// Even if the ids of the last tick are used up, the word differs from that of a closed generator.
func TestWholeWord(t *testing.T) {
	for _, shape := range []Shape{
		whole, wide, narrow,
		{First: MaxLast - 1, Last: MaxLast, Unit: 1, PerTick: 1},
		{First: 7, Last: 7 + 1<<45 - 1, Unit: 1, PerTick: 1<<18 - 1}, // all bits set, except the used ids
		{First: 7, Last: 7 + 1<<45 - 1, Unit: 1, PerTick: 1 << 18},
	} {
		clock := &handClock{shape.First}
		g := newTest(t, shape, clock.now)
		for _, at := range []uint64{shape.First, shape.Last} {
			clock.milli = at
			if r := take(t, g, shape.PerTick+1); r != (run{at, 0, shape.PerTick}) {
				t.Fatalf("%+v at %d: %v", shape, at, r)
			}
			if milli, used := g.Last(); milli != at || used != shape.PerTick || g.Behind() != 0 {
				t.Errorf("%+v: the last is %d:%d", shape, milli, used)
			}
			if r, err := g.try(1); at == shape.Last && !errors.Is(err, ErrUsedUp) {
				t.Errorf("%+v: after the last id: %v, %v", shape, r, err)
			}
		}
		if g.Lower(shape.Last - 1); g.Limit().Milli() != shape.Last {
			t.Errorf("%+v: the limit is below an id, at %d", shape, g.Limit().Milli())
		}
		if last := g.Close(); last != shape.Last {
			t.Errorf("%+v: closed at %d", shape, last)
		}
		if g.Lower(shape.First); g.word.Load() != closed {
			t.Errorf("%+v: closed, the word is %#x", shape, g.word.Load())
		}
		if r, err := g.try(1); !errors.Is(err, ErrClosed) {
			t.Errorf("%+v: closed: %v, %v", shape, r, err)
		}
		if milli, used := g.Last(); milli != shape.Last || used != shape.PerTick {
			t.Errorf("%+v: closed, the last is %d:%d", shape, milli, used)
		}
	}
}

// A generator that begins after the last tick makes no ids.
func TestBeginAfterTheEnd(t *testing.T) {
	for _, last := range []uint64{wide.Last, wide.Last + 1, MaxLast, 1<<64 - 1} {
		g := newTest(t, wide, (&handClock{wide.Last}).now)
		g.Begin(last)
		if r, err := g.try(1); !errors.Is(err, ErrUsedUp) {
			t.Errorf("begun after %d: %v, %v", last, r, err)
		}
		if milli, used := g.Last(); milli != wide.Last || used != MaxPerTick {
			t.Errorf("begun after %d: the last is %d:%d", last, milli, used)
		}
	}
}

func TestShapesThatCannotBeCounted(t *testing.T) {
	for name, change := range map[string]func(*Shape){
		"no unit":                func(s *Shape) { s.Unit = 0 },
		"more than a second":     func(s *Shape) { *s = Shape{Last: MaxLast, Unit: MaxUnit + 1, PerTick: 1} },
		"no ids":                 func(s *Shape) { s.PerTick = 0 },
		"more ids than fit":      func(s *Shape) { s.PerTick = MaxPerTick + 1 },
		"an odd epoch":           func(s *Shape) { s.First = 1001 },
		"the end first":          func(s *Shape) { s.First, s.Last = 1104, 1100 },
		"beyond what is counted": func(s *Shape) { s.Last = MaxLast + 1 },
		"more than the word has": func(s *Shape) { *s = wide; s.Last++ },
	} {
		s := narrow
		change(&s)
		if g, err := New(s, nil); err == nil {
			t.Errorf("%s: %v", name, g)
		}
	}
}

func TestBegin(t *testing.T) {
	for last, want := range map[uint64]uint64{0: 1000, 999: 1000, 1000: 1004, 1003: 1004, 1004: 1008} {
		clock := &handClock{990} // before the epoch
		g := newTest(t, narrow, clock.now)
		g.Begin(last)
		if milli, used := g.Last(); last < narrow.First && (milli != narrow.First || used != 0) {
			t.Errorf("begun after %d, before any id: %d:%d", last, milli, used)
		}
		var r run
		err := ErrUsedUp
		for ; err != nil && clock.milli < 2000; clock.milli++ {
			r, err = g.try(1)
		}
		if err != nil || r.milli != want {
			t.Errorf("begun after %d: %v, %v, want it at %d", last, r, err, want)
		}
	}
}

// If another caller takes an id of a later tick after this caller has read the clock, that does not
// count as a clock that went back.
func TestOldReadingIsNotBackwards(t *testing.T) {
	var g *Generator
	clock, held := &handClock{1000}, true
	g = newTest(t, whole, func() uint64 {
		now := clock.milli
		if held { // the reader is suspended, and another caller takes an id
			held = false
			clock.milli = 1001
			take(t, g, 1)
		}
		return now
	})
	if r := take(t, g, 1); r != (run{1001, 1, 1}) {
		t.Error(r)
	}
}

func TestMilliseconds(t *testing.T) {
	for n, want := range map[uint64]time.Duration{0: 0, 1500: 1500 * time.Millisecond,
		math.MaxUint64: math.MaxInt64 / 1_000_000 * 1_000_000} {
		if got := Milliseconds(n); got != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}

func TestSuccessor(t *testing.T) {
	clock := &handClock{1040}
	g := newTest(t, narrow, clock.now)
	g.Limit().Set(1050)
	naps := 0
	g.Sleep = func(context.Context, time.Duration) error {
		naps++
		clock.milli++
		return nil
	}
	take(t, g, 2)
	g.Close()
	clock.milli = 1020
	next := g.Successor(1016)
	if r := take(t, next, 3); r != (run{1020, 0, 3}) {
		t.Errorf("the successor begins with %v", r)
	}
	if next.pause(t.Context(), 1020); naps != 1 {
		t.Errorf("the successor has slept %d times, not as the generator sleeps", naps)
	}
	clock.milli = 1020
	if r, err := g.Successor(1020).try(1); !errors.Is(err, ErrUsedUp) {
		t.Errorf("in the tick that it must begin after: %v, %v", r, err)
	}
	g.Limit().Extend = func(context.Context, uint64) error { return ErrTimestampNotSaved }
	if r, err := g.Successor(1016).try(1); !errors.Is(err, ErrTimestampNotSaved) {
		t.Errorf("before its limit was raised: %v, %v", r, err)
	}
}

func TestResume(t *testing.T) {
	clock := &handClock{1043}
	g := newTest(t, narrow, clock.now)
	g.Resume(1041, 2)
	if r := take(t, g, 2); r != (run{1040, 2, 1}) {
		t.Errorf("the generator resumes with %v", r)
	}
}

func TestLimit(t *testing.T) {
	clock := &handClock{1000}
	g := newTest(t, whole, clock.now)
	g.Begin(1000)
	g.Limit().Set(1002)
	if _, err := g.try(1); !errors.Is(err, ErrUsedUp) {
		t.Errorf("in the millisecond of the last run: %v", err)
	}
	clock.milli = 1002
	take(t, g, 1)
	clock.milli = 1003
	if r, err := g.try(1); !errors.Is(err, ErrTimestampNotSaved) {
		t.Errorf("past the limit: %v, %v", r, err)
	}
	g.Limit().Extend = func(_ context.Context, milli uint64) error {
		g.Limit().Set(milli + 5)
		return nil
	}
	take(t, g, 1)
	clock.milli = 2000
	g.Limit().Extend = func(ctx context.Context, _ uint64) error { return context.Cause(ctx) }
	if r, err := g.try(1); !errors.Is(err, ErrTimestampNotSaved) {
		t.Errorf("past the limit, without a wait: %v, %v", r, err)
	}
	clock.milli = MaxLast // the last time
	g.Limit().Extend = func(_ context.Context, milli uint64) error { g.Limit().Set(milli); return nil }
	take(t, g, 1)
	if g.Limit().Set(1 << 63); g.Limit().Milli() != MaxLast || g.Limit().Last() != MaxLast {
		t.Errorf("the limit is %d", g.Limit().Milli())
	}
}

// Found by the simulator: the clock was set back while the limit was raised, so the limit was
// raised to less than requested.
func TestLimitRaisedTooLittle(t *testing.T) {
	clock := &handClock{2000}
	g := newTest(t, whole, clock.now)
	g.Begin(1000)
	g.Limit().Set(1000)
	g.Limit().Extend = func(context.Context, uint64) error {
		clock.milli = 1500
		g.Limit().Set(1600)
		return nil
	}
	if r := take(t, g, 1); r.milli != 1500 {
		t.Errorf("%v with the limit at 1600", r)
	}
}

func TestAwait(t *testing.T) {
	clock := &handClock{1000}
	g := newTest(t, whole, clock.now)
	slept := time.Duration(0)
	sleep := func(ctx context.Context, d time.Duration) error {
		slept += d
		clock.milli += uint64(d / time.Millisecond)
		return ctx.Err()
	}
	if err := Await(t.Context(), sleep, g.Behind); err != nil || slept != 0 {
		t.Errorf("without an id: %v, slept %v", err, slept)
	}
	take(t, g, 1)
	clock.milli = 500
	if behind := g.Behind(); behind != 500 {
		t.Errorf("%d ms behind", behind)
	}
	if err := Await(t.Context(), sleep, g.Behind); err != nil || slept != 500*time.Millisecond || clock.milli != 1000 {
		t.Errorf("%v, slept %v to %d", err, slept, clock.milli)
	}
	clock.milli = 500
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Await(ctx, sleep, g.Behind); !errors.Is(err, context.Canceled) || clock.milli != 600 {
		t.Errorf("given up: %v, at %d", err, clock.milli)
	}
	if err := Await(ctx, Sleep, g.Behind); !errors.Is(err, context.Canceled) {
		t.Errorf("given up in a sleep: %v", err)
	}
	g.Close()
	if err := Await(t.Context(), sleep, g.Behind); err != nil || clock.milli != 600 {
		t.Errorf("closed: %v, at %d", err, clock.milli)
	}
}

func TestClosed(t *testing.T) {
	for _, milli := range []uint64{0, 1000, MaxLast, MaxLast + 1, MaxLast + 2, 1<<64 - 1} {
		clock := &handClock{1000}
		g := newTest(t, whole, clock.now)
		take(t, g, 1)
		if last := g.Close(); last != 1000 {
			t.Errorf("closed at %d", last)
		}
		clock.milli = milli
		if r, err := g.try(1); !errors.Is(err, ErrClosed) {
			t.Errorf("at %d: %v, %v", milli, r, err)
		}
	}
}

func TestCloseCountsEveryID(t *testing.T) {
	for range 20 {
		g := newTest(t, whole, nil)
		var wg sync.WaitGroup
		lasts := make([]uint64, 4)
		var closed atomic.Bool
		for i := range lasts {
			first := make(chan struct{})
			wg.Go(func() {
				var once sync.Once
				for {
					after := closed.Load()
					milli, _, err := g.One(t.Context())
					once.Do(func() { close(first) })
					if err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					if lasts[i] = milli; after {
						t.Error("an id was made after Close")
						return
					}
				}
			})
			<-first
		}
		end := g.Close()
		closed.Store(true)
		wg.Wait()
		latest := uint64(0)
		for _, last := range lasts {
			latest = max(latest, last)
		}
		if latest != end {
			t.Fatalf("Close returned %d, but the last id is at %d", end, latest)
		}
	}
}

func TestMilliOf(t *testing.T) {
	const last = math.MaxInt64 / 1000
	for at, want := range map[time.Time]uint64{
		time.Unix(-1, 999_999_999):                  0,
		{}:                                          0,
		time.Unix(math.MinInt64, 0):                 0,
		time.Unix(0, 5_000_000):                     5,
		time.Unix(1, 2_999_999):                     1002,
		time.Unix(last-1, 999_999_999):              last*1000 - 1,
		time.Unix(last, 0):                          math.MaxInt64,
		time.Unix(1<<63-62135596801, 999_999_999):   math.MaxInt64,
		time.Unix(math.MaxInt64, 0):                 math.MaxInt64,
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC): 1767225600_000,
		time.Date(292278993, 1, 1, 0, 0, 0, 0,
			time.UTC): uint64(time.Date(292278993, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()),
	} {
		if got := MilliOf(at); got != want {
			t.Errorf("%v: %d, want %d", at, got, want)
		}
	}
}

// A generator can resume in the last tick.
func TestResumeAtLastTick(t *testing.T) {
	g := newTest(t, whole, nil)
	if g.Resume(g.shape.Last, 1); g.word.Load() != g.begin(g.shape.Last)|1 {
		milli, used := g.Last()
		t.Errorf("the last is %d:%d", milli, used)
	}
}
