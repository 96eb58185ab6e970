package tick

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Last returns the last id at any moment while the generator is being closed, and afterwards.
func TestLastWhileClosing(t *testing.T) {
	var wg sync.WaitGroup
	for range 4000 {
		g := newTest(t, narrow, (&handClock{1040}).now)
		take(t, g, 2)
		closed := make(chan struct{})
		wg.Go(func() { g.Close(); close(closed) })
		for closing := true; closing; {
			select {
			case <-closed:
				closing = false
				if err := g.Ready(); !errors.Is(err, ErrClosed) {
					t.Fatalf("closed, and ready: %v", err)
				}
			default:
			}
			if milli, used := g.Last(); milli != 1040 || used != 2 {
				t.Fatalf("the last is %d:%d", milli, used)
			}
		}
	}
	wg.Wait()
}

func TestReady(t *testing.T) {
	clock := &handClock{1040}
	g := newTest(t, narrow, clock.now)
	g.Limit().Set(1060)
	take(t, g, 3)
	broken := errors.New("broken")
	for _, c := range []struct {
		clock uint64
		err   error
	}{
		{1040, nil}, {1036, ErrClockBackwards}, {999, ErrClockBackwards}, {1044, nil}, {1060, nil},
		{1064, ErrTimestampNotSaved},
	} {
		if clock.milli = c.clock; !errors.Is(g.Ready(), c.err) {
			t.Errorf("at %d: %v, want %v", c.clock, g.Ready(), c.err)
		}
	}
	clock.milli = 1064
	g.Limit().Extend = func(context.Context, uint64) error { return broken }
	if err := g.Ready(); !errors.Is(err, broken) {
		t.Errorf("past a limit that cannot be raised: %v", err)
	}
	g.Limit().Extend = func(_ context.Context, milli uint64) error { g.Limit().Set(milli); return nil }
	if err := g.Ready(); err != nil {
		t.Errorf("past a limit that can be raised: %v", err)
	}
	if clock.milli = narrow.Last + narrow.Unit; g.Ready() == nil {
		t.Error("ready after the last tick")
	}
	g.Close()
	if err := g.Ready(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// If the limit is lowered, a concurrent call that is about to take an id above it fails.
func TestLower(t *testing.T) {
	for name, c := range map[string]struct {
		at    uint64 // the tick of the last id
		ids   int    // the number of ids used in that tick
		clock uint64 // the time when the limit is lowered
		to    uint64 // the argument of Lower
		want  uint64 // the limit afterwards
	}{
		"1 of 3 ids in the clock's tick":       {at: 1020, ids: 1, clock: 1020, to: 1032, want: 1032},
		"the clock at the new limit":           {at: 1020, ids: 3, clock: 1032, to: 1032, want: 1032},
		"no ids":                               {clock: 1020, to: 1032, want: 1032},
		"the last id before the clock":         {at: 1020, ids: 3, clock: 1024, to: 1032, want: 1032},
		"2 of 3 ids in the clock's tick":       {at: 1020, ids: 2, clock: 1020, to: 1032, want: 1032},
		"all ids in the clock's tick":          {at: 1020, ids: 3, clock: 1020, to: 1032, want: 1060},
		"the clock before the last id":         {at: 1024, ids: 1, clock: 1020, to: 1032, want: 1032},
		"the clock before a used-up tick":      {at: 1024, ids: 3, clock: 1020, to: 1032, want: 1060},
		"the last id at the new limit":         {at: 1032, ids: 1, clock: 1020, to: 1032, want: 1032},
		"the last id after the new limit":      {at: 1036, ids: 1, clock: 1020, to: 1032, want: 1060},
		"a new limit above the old":            {clock: 1020, to: 1064, want: 1060},
		"the clock after the limit, no ids":    {clock: 1040, to: 1032, want: 1060},
		"the clock after the limit, and an id": {at: 1020, ids: 1, clock: 1040, to: 1032, want: 1032},
	} {
		clock := &handClock{c.at}
		g := newTest(t, narrow, clock.now)
		g.Limit().Set(1060)
		if c.ids > 0 {
			take(t, g, c.ids)
		} else {
			g.Begin(1000)
		}
		clock.milli = c.clock
		found := g.word.Load() // read by a call that is about to take an id at the limit
		g.Lower(c.to)
		got := g.Limit().Milli()
		if got != c.want {
			t.Errorf("%s: the limit is %d, want %d", name, got, c.want)
		} else if got == c.to && g.word.CompareAndSwap(found, g.begin(1060)+1) {
			t.Errorf("%s: an id later than the limit is taken", name)
		}
		if milli, used := g.Last(); used > 3 {
			t.Errorf("%s: %d ids are used in the tick at %d, which has 3", name, used, milli)
		}
		if c.clock >= c.at {
			r, err := g.try(1)
			if err == nil && (r.milli != c.clock || r.milli == c.at && r.first < c.ids) {
				t.Errorf("%s: the next id is %v, after %d ids at %d", name, r, c.ids, c.at)
			}
			if none := c.clock > got || c.clock == c.at && c.ids >= 2; none != (err != nil) {
				t.Errorf("%s: the next id is %v, %v", name, r, err)
			}
		}
	}
	g := newTest(t, narrow, (&handClock{1040}).now)
	g.Close()
	if g.Lower(1032); g.Limit().Milli() != narrow.Last {
		t.Errorf("closed: the limit is %d", g.Limit().Milli())
	}
}

// If there is no id in the clock's tick, Lower skips to that tick, and uses up no id of an earlier one.
func TestLowerSkipsToTheClock(t *testing.T) {
	clock := &handClock{1020}
	g := newTest(t, narrow, clock.now)
	g.Limit().Set(1060)
	take(t, g, 3)
	clock.milli = 1024
	g.Lower(1032)
	if milli, used := g.Last(); milli != 1024 || used != 0 {
		t.Errorf("the last is %d:%d", milli, used)
	}
}

// Lowering a limit to its present value skips no id.
func TestLowerToWhatItIs(t *testing.T) {
	g := newTest(t, narrow, (&handClock{1020}).now)
	g.Limit().Set(1060)
	take(t, g, 1)
	g.Lower(1060)
	if r := take(t, g, 1); r.first != 1 {
		t.Errorf("the next id is %v", r)
	}
}

func TestDoubted(t *testing.T) {
	g := newTest(t, narrow, (&handClock{1020}).now)
	if ahead := g.Doubted(); ahead != 0 {
		t.Errorf("without the machine's clock: %v", ahead)
	}
	if milli, first, err := g.One(t.Context()); milli != 1020 || first != 0 || err != nil {
		t.Errorf("%d:%d, %v", milli, first, err)
	}
	m := &machine{wall: 1_700_000_000_000_000_000}
	g.system = m.clock()
	m.step(time.Hour)
	if g.system.milli(); g.Doubted() != time.Hour {
		t.Errorf("an hour ahead: %v", g.Doubted())
	}
	m.step(-2 * time.Hour)
	if g.system.milli(); g.Doubted() != 0 {
		t.Errorf("an hour behind: %v", g.Doubted())
	}
}

func TestZeroValue(t *testing.T) {
	var g *Generator
	if _, _, err := g.One(t.Context()); !errors.Is(err, ErrZero) {
		t.Error(err)
	}
	if r, err := g.try(1); !errors.Is(err, ErrZero) {
		t.Error(r, err)
	}
	milli, used := g.Last()
	if all := milli + uint64(used) + g.Now() + g.Waits() + uint64(g.PerTick()); all != 0 {
		t.Errorf("the last id is %d:%d, and the sum %d, want 0", milli, used, all)
	}
}

// After Halt there are no more ids, in the tick of the last id or later, also for a concurrent call
// that is about to take one.
func TestHalt(t *testing.T) {
	for ids := range 4 { // used in the tick, which has 3
		clock := &handClock{1020}
		g := newTest(t, narrow, clock.now)
		g.Limit().Set(1060)
		if g.Begin(1000); ids > 0 {
			take(t, g, ids)
		}
		found := g.word.Load()
		at, _ := g.Last()
		g.Halt()
		if g.word.CompareAndSwap(found, g.begin(1060)+1) {
			t.Errorf("after %d ids: another is taken", ids)
		}
		if last, used := g.Last(); last != at || used != narrow.PerTick {
			t.Errorf("after %d ids: the last is %d:%d, want %d:%d", ids, last, used, at, narrow.PerTick)
		}
		for clock.milli <= 1060 {
			if r, err := g.try(1); !errors.Is(err, ErrUsedUp) && !errors.Is(err, ErrTimestampNotSaved) {
				t.Errorf("after %d ids, at %d: %v, %v", ids, clock.milli, r, err)
			}
			clock.milli += narrow.Unit
		}
		if g.Lower(1056); g.Limit().Milli() != 0 || g.touch(at) {
			t.Errorf("after %d ids: the limit is %d", ids, g.Limit().Milli())
		}
		if last := g.Close(); last != at {
			t.Errorf("after %d ids: closed at %d", ids, last)
		}
		if g.Halt(); g.word.Load() != closed {
			t.Errorf("after %d ids: no longer closed", ids)
		}
	}
}
