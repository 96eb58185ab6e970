package durable

import (
	"errors"
	"os"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// When Remember returns, the number is in the file together with the marks, and it stays.
func TestRemember(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	if m.Number() != nil || m.Latest() != 0 {
		t.Errorf("a new file has %v, %d", m.Number(), m.Latest())
	}
	first := &mark.Number{Cluster: "c", Prefix: "/p/", Number: 1, Token: 2, Mark: 3}
	if err := m.Remember(first); err != nil {
		t.Fatal(err)
	}
	first.Number = 100 // the caller may change it
	if m.Number().Number != 1 {
		t.Errorf("the number is %v", m.Number())
	}
	inFile := func(want uint64) {
		t.Helper()
		if c := b.content(t); c.Number == nil && want > 0 || c.Number != nil && c.Number.Number != want {
			t.Errorf("the file has %v, want number %d", c, want)
		}
	}
	inFile(1)
	d := b.openIn(t, m, "")
	b.clock.Add(5000)
	second := mark.Number{Number: 2}
	if err := m.Remember(&second); err != nil || b.saved(t) != b.clock.Load()+window {
		t.Errorf("%v, with the mark at %d", err, b.saved(t))
	}
	if id := d.next(t); id.milli != b.clock.Load() {
		t.Errorf("the mark was moved, but the id is at %d", id.milli)
	}
	inFile(2)
	b.broken.Store(true)
	if err := m.Remember(nil); !errors.Is(err, errFull) || !errors.Is(err, tick.ErrTimestampNotSaved) ||
		*m.Number() != second {
		t.Errorf("%v, and the number is %v", err, m.Number())
	}
	b.broken.Store(false)
	m.Number().Number = 100
	if err := errors.Join(d.Renew(), m.Finish()); err != nil {
		t.Error(err)
	}
	inFile(2)
	if err := m.Remember(&mark.Number{Number: 3}); err != nil {
		t.Errorf("after Finish: %v", err)
	}
	inFile(3)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Remember(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	m = b.marks(t, mark.OS{})
	if m.Number().Number != 3 {
		t.Errorf("after reopening, the number is %v", m.Number())
	}
	if err := m.Remember(nil); err != nil || m.Number() != nil {
		t.Errorf("%v, %v", m.Number(), err)
	}
	inFile(0)
}

// Finish closes the generators and keeps the lock, which Close releases.
func TestFinish(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	d := b.openIn(t, m, "a")
	b.clock.Add(5)
	last := d.next(t)
	if err := errors.Join(m.Finish(), m.Finish()); err != nil {
		t.Error(err)
	}
	if m.Latest() != last.milli || d.Mark().UnixMilli() != int64(last.milli) {
		t.Errorf("the latest is %d, the mark %v, the last id %d", m.Latest(), d.Mark(), last.milli)
	}
	if _, err := d.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("an id after Finish: %v", err)
	}
	if _, err := b.tryIn(t, m, "b"); !errors.Is(err, errEnded) {
		t.Errorf("opened after Finish: %v", err)
	}
	if _, err := OpenMarksOn(mark.OS{}, b.sleep, b.path, nil, linger); !errors.Is(err, mark.ErrLocked) {
		t.Errorf("the lock after Finish: %v", err)
	}
	if err := errors.Join(m.Close(), m.Close(), m.Finish()); err != nil {
		t.Error(err)
	}
	b.marks(t, mark.OS{}).Close()

	m = b.marks(t, disk{broken: &b.broken})
	b.clock.Add(1)
	d = b.openIn(t, m, "a")
	b.broken.Store(true)
	last = d.next(t)
	err := m.Finish()
	if b.broken.Store(false); !errors.Is(err, errFull) || m.Finish() != err || !errors.Is(m.Close(), errFull) ||
		m.Latest() < last.milli {
		t.Errorf("on a full disk: %v, with the latest at %d", err, m.Latest())
	}
	b.marks(t, mark.OS{}).Close()
}

// Latest is not lowered with the mark if earlier ids may be later than the mark.
func TestLatest(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	plain := b.openIn(t, m, "plain")
	ids := b.ids()
	s := &stateful{Generator: ids, safe: 0}
	o := b.options()
	o.Marks = m
	rewinding, err := OpenOn(t.Context(), "rewinding", s, o)
	if err != nil {
		t.Fatal(err)
	}
	const high = someTime + window
	latest := func(name string) uint64 { return b.content(t).Marks[name].Latest }
	if m.Latest() != high || latest("plain") != high || latest("rewinding") != high {
		t.Errorf("the latest times are %d, %d and %d, want %d", m.Latest(), latest("plain"), latest("rewinding"), high)
	}
	b.clock.Store(someTime - 3600_000)
	if err := errors.Join(plain.Renew(), rewinding.Close(), plain.Close()); err != nil {
		t.Fatal(err)
	}
	if m.Latest() != high || latest("plain") != someTime-3600_000 || latest("rewinding") != high {
		t.Errorf("set back: the latest times are %d, %d and %d, want %d, %d and %d",
			m.Latest(), latest("plain"), latest("rewinding"), high, uint64(someTime-3600_000), high)
	}
	m.Close()

	m = b.marks(t, mark.OS{})
	if m.Latest() != high {
		t.Errorf("the latest time read from the file is %d", m.Latest())
	}
	ids = b.ids()
	b.clock.Add(1)
	o.Marks = m
	if _, err := OpenOn(t.Context(), "rewinding", &stateful{Generator: ids}, o); err != nil {
		t.Fatal(err)
	}
	if latest("rewinding") != high {
		t.Errorf("after reopening, the latest time is %d", latest("rewinding"))
	}
}

// With a bound, a new name begins after all ids of closed generators, which may have been made
// with the same number. Without a bound, it begins at the clock's time.
func TestNewNameWithBound(t *testing.T) {
	b := newBench(t)
	put(t, b.path, named("old", someTime+50_000))
	bound := &testBound{after: someTime + 20_000}
	bound.milli.Store(someTime + 1_000_000)
	open := func(m *Marks, name string, bound Bound) *stateful {
		t.Helper()
		ids := b.ids()
		s := &stateful{Generator: ids}
		o := b.options()
		o.Marks, o.Bound = m, bound
		k, err := OpenOn(t.Context(), name, s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if _, _, _, err := ids.Reserve(t.Context(), 1); err != nil {
			t.Error(err)
		}
		return s
	}
	m := b.marks(t, mark.OS{})
	if open(m, "free", nil); b.clock.Load() != someTime {
		t.Errorf("without a bound it waits until %d", b.clock.Load())
	}
	if s := open(m, "a", bound); s.bound != someTime+50_000 || b.clock.Load() != someTime+50_001 {
		t.Errorf("a new name begins after %d, at %d", s.bound, b.clock.Load())
	}
	bound.after = someTime + 60_000
	if s := open(m, "b", bound); s.bound != someTime+60_000 || b.clock.Load() != someTime+60_001 {
		t.Errorf("a new name with a higher bound begins after %d, at %d", s.bound, b.clock.Load())
	}
	bound.after = 0
	if s := open(m, "a", bound); s.bound != 0 || b.clock.Load() != someTime+60_001 {
		t.Errorf("with a mark under its name, it begins after %d, at %d", s.bound, b.clock.Load())
	}
	const ended = someTime + 60_001 + window // the latest mark of a generator that can rewind
	if s := open(m, "c", bound); s.bound != ended || b.clock.Load() != ended+1 {
		t.Errorf("after other generators were closed, it begins after %d, at %d", s.bound, b.clock.Load())
	}
	m.Close()
	os.Remove(b.path)
	m = b.marks(t, mark.OS{})
	if s := open(m, "a", bound); s.bound != 0 {
		t.Errorf("in a new file, it begins after %d", s.bound)
	}
}
