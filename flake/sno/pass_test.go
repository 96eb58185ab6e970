package sno

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

// The tick-tock bit flips immediately when the clock is first set back, and again when the clock is
// set back to a safe time.
func TestTickTock(t *testing.T) {
	clock := newClock()
	g := newGenerator(t, &Snapshot{}, clock.now)
	for i, c := range []struct {
		ahead int
		flips bool
	}{
		{0, false}, {-4, true}, {0, false}, {1000, false}, // later than all ids
		{-4, true}, {4, false}, // to a time at which only the other bit was used
		{1000, false}, {-900, true},
	} {
		clock.add(c.ahead)
		before := g.Snapshot().Drifts
		id := take(t, g, 0)
		after := g.Snapshot().Drifts
		if id.Milli != clock.milli.Load() || id.TickTock != (after&1 == 1) || (after != before) != c.flips {
			t.Errorf("%d: %+v after %d drifts, then %d", i, id, before, after)
		}
	}
}

// If the clock catches up before the next pass begins, the bit does not flip.
func TestCatchUpBeforeNextPass(t *testing.T) {
	reads := 0
	g := newGenerator(t, &Snapshot{}, func() uint64 {
		if reads++; 2 <= reads && reads <= 5 { // two readings in Next, then two in Reserve
			return someTime - 4
		}
		return someTime
	})
	for i := range 2 {
		if id := take(t, g, 0); id.Milli != someTime || id.TickTock || id.Sequence != uint16(i) {
			t.Errorf("%+v", id)
		}
	}
	if reads < 6 {
		t.Errorf("only %d readings of the clock", reads)
	}
}

// During a call, the clock is set back further, to the last tick in which the other bit was used.
// In each round, this happens one reading of the clock later.
func TestBackAgainWhileTurning(t *testing.T) {
	for looks := range 10 {
		clock, left := newClock(), -1
		g := newGenerator(t, &Snapshot{}, func() uint64 {
			if left--; left == 0 {
				return someTime
			}
			return clock.now()
		})
		g.marker.Sleep = func(context.Context, time.Duration) error { return nil }
		first := take(t, g, 0)
		for _, ahead := range []int{-400, 10_000} {
			clock.add(ahead)
			take(t, g, 0)
		}
		clock.milli.Store(someTime + 4)
		left = looks + 1
		if id := take(t, g, 0); id == first || id.Milli == someTime {
			t.Errorf("after %d readings: %+v", looks, id)
		}
	}
}

// Of two calls that see that the clock was set back, only one flips the bit.
func TestTurnOnce(t *testing.T) {
	clock := newClock()
	g := newGenerator(t, &Snapshot{}, clock.now)
	take(t, g, 0)
	p := g.passes.now.Load()
	p.waits = 7
	clock.add(-400)
	for range 2 {
		if err := g.passes.turn(p, flake.ErrClockBackwards); err != nil {
			t.Error(err)
		}
	}
	if s := g.Snapshot(); s.Drifts != 1 || s.WallSafe != unitsOf(someTime) || g.Waits() != 7 {
		t.Errorf("%+v, %d waits", s, g.Waits())
	}
}

// A call that is held up while another call begins the next pass still gets an id.
func TestTurnedByOtherCall(t *testing.T) {
	clock, held := newClock(), false
	var g *Generator
	g = newGenerator(t, &Snapshot{}, func() uint64 {
		if held {
			held = false
			take(t, g, 0)
		}
		return clock.now()
	})
	take(t, g, 0)
	clock.add(-400)
	held = true
	run, err := g.Reserve(t.Context(), 1)
	if id := run.First.Decompose(); id.Milli != someTime-400 || !id.TickTock || id.Sequence != 1 || run.Count != 1 ||
		err != nil {
		t.Errorf("%+v, %d, %v", id, run.Count, err)
	}
}

// A generator stays ready when the clock is set back, unless the time is unsafe.
func TestReady(t *testing.T) {
	clock := newClock()
	g := newGenerator(t, &Snapshot{}, clock.now)
	take(t, g, 0)
	for _, c := range []struct {
		milli uint64
		ready bool
		back  bool // it fails with flake.ErrClockBackwards
	}{
		{someTime, true, false}, {someTime - 400, true, false}, {someTime - 800, false, true},
		{someTime - 400, true, false},
		{Epoch, false, true}, {Epoch - 1, false, false},
	} {
		clock.milli.Store(c.milli)
		err := g.Ready()
		if (err == nil) != c.ready || errors.Is(err, flake.ErrClockBackwards) != c.back {
			t.Errorf("at %d: %v", c.milli, err)
		}
		if c.ready {
			take(t, g, 0)
		}
	}
	g.passes.pass().ids.Close() // as a call does before it begins the next pass
	if err := g.Ready(); err != nil {
		t.Errorf("between two passes: %v", err)
	}
	g.Close()
	for range 2 {
		if err := g.Ready(); !errors.Is(err, flake.ErrClosed) {
			t.Errorf("Ready after Close: %v", err)
		}
	}
}

// While a call begins a pass, another call makes a later id, which counts as one of the previous
// pass. In each round, this happens one reading of the clock later.
func TestIDWhileTurning(t *testing.T) {
	for looks := range 10 {
		clock, left := newClock(), -1
		var g *Generator
		var other Parts
		g = newGenerator(t, &Snapshot{}, func() uint64 {
			if left--; left == 0 {
				clock.add(1000)
				other = take(t, g, 0)
				clock.add(-1000)
			}
			return clock.now()
		})
		naps, slept := 0, time.Duration(0)
		g.marker.Sleep = clock.sleeper(&naps, &slept)
		take(t, g, 0)
		clock.add(-400)
		left = looks + 1
		take(t, g, 0)
		if s := g.Snapshot(); s.Drifts == 1 && !other.TickTock && other.Milli > 0 && s.WallSafe < unitsOf(other.Milli) {
			t.Errorf("after %d readings: %+v, then %+v", looks, other, s)
		}
	}
}

// No ids can be made at a time for which both bits were used. CatchUp sleeps just long enough, and
// reads the clock only a few times.
func TestUnsafePast(t *testing.T) {
	for name, c := range map[string]struct {
		ahead []int64 // an id is made after each step but the last
		sleep time.Duration
		bit   bool
	}{
		"until the last id":  {[]int64{0, -2000, -1000}, 1000 * time.Millisecond, true},
		"past the safe time": {[]int64{0, -40, 10_000, -10_400}, 444 * time.Millisecond, false},
		"to the safe time":   {[]int64{0, -40, 10_000, -9960}, 4 * time.Millisecond, false},
		"to the epoch":       {[]int64{0, Epoch - someTime}, 4 * time.Millisecond, true},
		"a tick":             {[]int64{0, -8, -4}, 4 * time.Millisecond, true},
	} {
		clock := newClock()
		g := newGenerator(t, &Snapshot{}, clock.now)
		naps, slept := 0, time.Duration(0)
		g.marker.Sleep = clock.sleeper(&naps, &slept)
		for i, ahead := range c.ahead {
			clock.milli.Add(uint64(ahead))
			if i < len(c.ahead)-1 {
				take(t, g, 0)
			}
		}
		if naps != 0 {
			t.Errorf("%s: slept before the clock was behind", name)
		}
		_, err1 := g.Next(t.Context())
		_, err2 := g.NextN(t.Context(), make([]ID, 1))
		_, err3 := g.Reserve(t.Context(), 1)
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, flake.ErrClockBackwards) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.CatchUp(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: CatchUp with a canceled context: %v", name, err)
		}
		clock.milli.Add(-uint64(slept / time.Millisecond))
		naps, slept = 0, 0
		clock.reads.Store(0)
		id := take(t, g, 0)
		if slept != c.sleep || id.TickTock != c.bit || id.Milli != clock.milli.Load() {
			t.Errorf("%s: slept %v, and then %+v", name, slept, id)
		}
		if reads := clock.reads.Load(); reads > 20+3*uint64(naps) {
			t.Errorf("%s: %d readings of the clock in %d naps", name, reads, naps)
		}
	}
}

// A generator does not go back to a time that its Bound excludes, with either tick-tock bit.
func TestBound(t *testing.T) {
	clock := newClock()
	b := bound{after: someTime - 8}
	g, err := Open(t.Context(), filepath.Join(t.TempDir(), "mark"), &Snapshot{}, Options{Clock: clock.now, Bound: b})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	take(t, g, 0)
	clock.add(-4)
	if id := take(t, g, 0); !id.TickTock || id.Milli != clock.milli.Load() {
		t.Errorf("%+v", id)
	}
	clock.add(1000)
	take(t, g, 0)
	clock.add(-1004)
	if id, err := g.Next(t.Context()); !errors.Is(err, flake.ErrClockBackwards) {
		t.Errorf("%v, %v", id, err)
	}
	// The same holds for the first step back.
	other, err := Open(t.Context(), filepath.Join(t.TempDir(), "mark"), &Snapshot{},
		Options{Clock: clock.now, Bound: bound{after: clock.milli.Load() - 4}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	take(t, other, 0)
	clock.add(-4)
	if id, err := other.Next(t.Context()); !errors.Is(err, flake.ErrClockBackwards) {
		t.Errorf("%v, %v", id, err)
	}
}

type bound struct{ after uint64 }

func (b bound) After() uint64                        { return b.after }
func (b bound) Milli() uint64                        { return 1 << 60 }
func (b bound) Extend(context.Context, uint64) error { return nil }
