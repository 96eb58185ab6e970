package durable

import (
	"errors"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// The latest id is that of any generator that ever had a mark in the file, of all passes.
func TestLatest(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	if got := m.Latest(); got != 0 {
		t.Errorf("a new file knows of %d", got)
	}
	b.openIn(t, m, "").next(t)
	b.openIn(t, m, "orders").next(t)
	b.clock.Add(1000)
	b.openIn(t, m, "gone").next(t)
	m.file.Close() // killed
	crashed := someTime + 1000 + window
	b.clock.Add(10_000)

	m = b.marks(t, mark.OS{})
	one := b.openIn(t, m, "")
	if got := m.Latest(); got < crashed {
		t.Errorf("after a crash it is %d, and the mark of one that is gone was %d", got, crashed)
	}
	b.clock.Add(5000)
	one.Renew()
	last := one.next(t)
	if err := errors.Join(m.Finish(), m.Finish()); err != nil {
		t.Fatal(err)
	}
	if got := m.Latest(); got != last.milli {
		t.Errorf("it is %d after the last id, of %d", got, last.milli)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	m = b.marks(t, mark.OS{})
	s := &stateful{latest: last.milli + 500}
	s.Generator, _ = tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, b.clock.Load)
	if _, err := OpenOn(t.Context(), mark.OS{}, b.sleep, "passes", s, Options{Marks: m}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m = b.marks(t, mark.OS{}); m.Latest() != s.latest {
		t.Errorf("an earlier pass went to %d, and %d is known", s.latest, m.Latest())
	}
}

// A name that is new in a file begins, where others may make ids of its number, above all
// that the file knows of: its ids may have had another name.
func TestNewNameWithinABound(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	b.openIn(t, m, "").next(t)
	m.file.Close() // killed
	m = b.marks(t, mark.OS{})
	b.openIn(t, m, "")
	bound := &testBound{after: someTime - 1000}
	bound.milli.Store(someTime + 1_000_000)
	b.clock.Store(someTime)
	ids, _ := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, b.clock.Load)
	k, err := OpenOn(t.Context(), mark.OS{}, b.sleep, "new", ids, Options{Marks: m, Bound: bound})
	if err != nil {
		t.Fatal(err)
	}
	if id := (&node{k, ids}).next(t); id.milli <= someTime+window {
		t.Errorf("its first id is of %d, and others may be of %d", id.milli, someTime+window)
	}
}

// A number is kept beside the marks, and forgotten, also when all have ended; and not if it
// cannot be saved.
func TestRemember(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	b.openIn(t, m, "").next(t)
	n := &mark.Number{Cluster: "c", Prefix: "p", Number: 1, Generation: 2, Token: 1<<64 - 1, After: 4, Floor: 5, Mark: 6}
	if err := m.Remember(n); err != nil || *b.content(t).Number != *n || *m.Number() != *n {
		t.Errorf("%v, %v", err, m.Number())
	}
	b.openIn(t, m, "b").next(t) // a save
	m.file.Close()              // killed
	m = b.marks(t, disk{broken: &b.broken})
	if *m.Number() != *n {
		t.Errorf("%v", m.Number())
	}
	b.openIn(t, m, "")
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	marks := b.content(t).Marks
	b.broken.Store(true)
	if err := m.Remember(nil); !errors.Is(err, errFull) || m.Number() == nil {
		t.Errorf("%v, %v", err, m.Number())
	}
	b.broken.Store(false)
	if err := m.Remember(nil); err != nil || b.content(t).Number != nil || m.Number() != nil {
		t.Errorf("%v, %v", err, m.Number())
	}
	if got := b.content(t).Marks; got[""].Milli != marks[""].Milli || got["b"].Milli != marks["b"].Milli {
		t.Errorf("the marks were %v, and are %v", marks, got)
	}
}
