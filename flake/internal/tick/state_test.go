package tick

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// What is closed tells the last id all the same.
func TestLastOfWhatIsClosed(t *testing.T) {
	g := newTest(t, narrow, (&handClock{1040}).now)
	take(t, g, 2)
	g.Close()
	if milli, used := g.Last(); milli != 1040 || used != 2 {
		t.Errorf("the last is %d:%d", milli, used)
	}
}

// It does so at any moment.
func TestLastWhileClosing(t *testing.T) {
	var wg sync.WaitGroup
	for range 4000 {
		g := newTest(t, narrow, (&handClock{1040}).now)
		take(t, g, 2)
		wg.Go(func() { g.Close() })
		for closing := true; closing; {
			closing = !errors.Is(g.Ready(), ErrClosed)
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
		{1040, nil}, {1036, ErrClockBackwards}, {999, ErrClockBackwards}, {1044, nil}, {1060, nil}, {1064, ErrTimestampNotSaved},
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

func TestZeroValue(t *testing.T) {
	var g *Generator
	if _, _, err := g.One(); !errors.Is(err, ErrZero) {
		t.Error(err)
	}
	if r, err := g.try(1); !errors.Is(err, ErrZero) {
		t.Error(r, err)
	}
	if err := g.Ready(); !errors.Is(err, ErrZero) {
		t.Error(err)
	}
	milli, used := g.Last()
	if all := milli + uint64(used) + g.Now() + g.Waits() + g.Behind() + uint64(g.PerTick()); all != 0 {
		t.Errorf("%d:%d, in all %d", milli, used, all)
	}
}
