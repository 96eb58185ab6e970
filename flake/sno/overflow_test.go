package sno

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOverflow(t *testing.T) {
	var reads atomic.Uint64
	told := make(chan Overflow, 10)
	g, err := NewGenerator(&Snapshot{SequenceMax: 9}, Options{Overflows: told, Clock: func() uint64 { return someTime + reads.Add(1)/100 }})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]ID, 30)
	if _, err := g.NextN(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	reads.Add(10_000)
	if _, err := g.NextN(t.Context(), ids[:11]); err != nil {
		t.Fatal(err)
	}
	reads.Add(10_000)
	for range 11 { // one by one
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(told)
	ticks := []uint32{1, 2, 1, 1}
	for o := range told {
		if o.Now.UnixMilli()%4 != 0 || o.Count != 1 || len(ticks) == 0 || o.Ticks != ticks[0] {
			t.Fatalf("%+v, want ticks %v", o, ticks)
		}
		ticks = ticks[1:]
	}
	if len(ticks) != 0 {
		t.Errorf("%v are not told of", ticks)
	}
}

// Calls that wait for one tick are told of once, all together.
func TestOverflowOfManyCalls(t *testing.T) {
	told := make(chan Overflow, 2)
	o := &overflow{told: told}
	for range 2 {
		o.begin()
	}
	for range 2 {
		o.end(someTime)
	}
	if got := <-told; got.Count != 2 || got.Ticks != 1 || len(told) != 0 || o.waiting != 0 {
		t.Errorf("%+v, and %d more, %+v", got, len(told), o)
	}
}

// Who is told of overflows has calls wait for the mark as all others do.
func TestOverflowsAndTheMark(t *testing.T) {
	clock := newClock()
	g, err := NewGenerator(&Snapshot{}, Options{Overflows: make(chan Overflow, 1), Clock: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	limit := g.core.Source.now.Load().ids.Limit()
	limit.Set(someTime)
	limit.Extend = func(ctx context.Context, milli uint64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		limit.Set(milli)
		return nil
	}
	clock.add(8)
	if id := take(t, g, 0); id.Milli != someTime+8 || g.overflow.ticks != 0 {
		t.Errorf("%+v, %+v", id, g.overflow)
	}
}

// Who is told of overflows holds nobody up.
func TestOverflowNotTaken(t *testing.T) {
	g, err := NewGenerator(&Snapshot{SequenceMax: 5}, Options{Overflows: make(chan Overflow)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := g.NextN(t.Context(), make([]ID, 10)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g.overflow.waiting != 0 || g.overflow.ticks == 0 {
		t.Errorf("%+v", g.overflow)
	}
}
