package durable

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testBound is a bound that is set by hand.
type testBound struct {
	after  uint64
	milli  atomic.Uint64
	extend func(milli uint64) error
}

func (b *testBound) After() uint64                                { return b.after }
func (b *testBound) Milli() uint64                                { return b.milli.Load() }
func (b *testBound) Extend(_ context.Context, milli uint64) error { return b.extend(milli) }

func TestBoundBegins(t *testing.T) {
	b := newBench(t)
	bound := &testBound{}
	bound.milli.Store(someTime + 1_000_000)
	o := b.options()
	o.Bound = bound
	for _, want := range []uint64{someTime + 30_000, someTime + 90_000} { // without a file, and with one
		bound.after = want
		d, err := b.node(t.Context(), disk{broken: &b.broken}, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.next(t); got.milli <= want || got.milli > want+200 {
			t.Errorf("the first id is at %d, but must be after %d", got.milli, want)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(b.logged(), "level=INFO"); got != 3 { // two for the bound, one for the mark
		t.Errorf("the wait is logged %d times", got)
	}
	b.clock.Add(1)
	d, err := b.node(t.Context(), disk{broken: &b.broken}, o)
	if err != nil || strings.Count(b.logged(), "level=INFO") != 3 {
		t.Errorf("with nothing to wait for: %v, %s", err, b.logged())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b.clock.Add(1000)
	bound.after += 1_000_000
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.node(ctx, disk{broken: &b.broken}, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestBoundEnds(t *testing.T) {
	b := newBench(t)
	bound := &testBound{}
	bound.milli.Store(someTime + 1000)
	away := errors.New("nobody answers")
	bound.extend = func(uint64) error { return away }
	o := b.options()
	o.Bound = bound
	d, err := b.node(t.Context(), disk{broken: &b.broken}, o)
	if err != nil {
		t.Fatal(err)
	}
	d.keep(make(chan time.Time)) // without a beat
	if got := b.saved(t); got != someTime+1000 {
		t.Errorf("the mark is at %d, past the bound", got)
	}
	b.clock.Store(someTime + 1000)
	if got := d.next(t); got.milli != someTime+1000 {
		t.Errorf("an id at %d", got.milli)
	}
	b.clock.Store(someTime + 1001)
	if got, err := d.try(); !errors.Is(err, away) {
		t.Errorf("%v, %v past the bound", got, err)
	}
	bound.extend = func(milli uint64) error { bound.milli.Store(milli + 10); return nil }
	if got := d.next(t); got.milli != someTime+1001 || b.saved(t) != someTime+1011 {
		t.Errorf("an id at %d, with the mark at %d", got.milli, b.saved(t))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A bound is not raised if it does not delay the caller, or while the file cannot be written.
func TestBoundIsLeftAlone(t *testing.T) {
	b := newBench(t)
	bound := &testBound{extend: func(uint64) error { return errors.New("Extend was called") }}
	bound.milli.Store(someTime + 1000)
	o := b.options()
	o.Bound = bound
	d, err := b.node(t.Context(), disk{broken: &b.broken}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer kill(d)
	if err := d.await(t.Context(), someTime+1001); err != nil { // the clock was set back
		t.Error(err)
	}
	b.clock.Store(someTime + 5000)
	bound.milli.Store(someTime + 4000)
	if err := d.await(done(t), someTime+4000); !errors.Is(err, context.Canceled) {
		t.Errorf("only the file delays the caller: %v", err)
	}
	d.marks.attempts.Settle(errFull)
	if err := d.await(t.Context(), someTime+4500); !errors.Is(err, errFull) {
		t.Errorf("the file cannot be written: %v", err)
	}
}
