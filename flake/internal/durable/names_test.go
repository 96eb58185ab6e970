package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// One of several generators can be closed and opened again, and continues after its last id. The
// file keeps the generator's mark even if it is opened without that generator.
func TestOneOfSeveral(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	own, a := b.openIn(t, m, ""), b.openIn(t, m, "a")
	b.clock.Add(window + 1) // otherwise tryIn might wait
	if _, err := b.tryIn(t, m, "a"); err == nil || !strings.Contains(err.Error(), `as "a"`) {
		t.Errorf("opened twice: %v", err)
	}
	if err := own.Renew(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a b", "a\nb", "a\x00", "a/b", "a\xff", "a\u2028"} {
		if _, err := b.tryIn(t, m, name); err == nil || !strings.Contains(err.Error(), "cannot be the name of a mark") {
			t.Errorf("%q: %v", name, err)
		}
	}
	last := a.next(t)
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if _, err := a.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if got := a.Mark().UnixMilli(); got != int64(last.milli) {
		t.Errorf("the mark is %d, the last id %d", got, last.milli)
	}
	if err := own.Renew(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(b.path); !strings.Contains(string(data), fmt.Sprintf(`"a":{"milli":%d,`, last.milli)) {
		t.Errorf("the mark of the closed generator is lost: %q, %v", data, err)
	}
	b.clock.Add(1)
	own.next(t)
	a = b.openIn(t, m, "a")
	if id := a.next(t); !id.after(last) || b.waited != 0 {
		t.Errorf("%v after %v, waited %v", id, last, b.waited)
	} else {
		last = id
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if id := b.openIn(t, m, "a").next(t); !id.after(last) || b.waited == 0 {
		t.Errorf("with the clock at the mark: %v after %v, waited %v", id, last, b.waited)
	}
	b.waited = 0
	b.clock.Add(5000)
	if err := own.Renew(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), m.Close(), own.Close()); err != nil {
		t.Error(err)
	}
	if _, err := own.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close of all: %v", err)
	}
	if err := own.Renew(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close of all: %v", err)
	}
	b.clock.Add(1)
	alone := b.open(t)
	alone.next(t)
	if got := b.inFile(t); !slices.Equal(got, []string{"", "a"}) || b.waited != 0 {
		t.Errorf("%q, waited %v", got, b.waited)
	}
	kill(alone)
	b.clock.Store(someTime)
	if _, err := b.tryIn(t, b.marks(t, mark.OS{}), "a"); !errors.Is(err, tick.ErrClockBackwards) ||
		!strings.Contains(err.Error(), b.path+" (a)") {
		t.Errorf("with the clock set back: %v", err)
	}
}

// An error of one generator does not affect the others.
func TestOneThatCannotBegin(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	own := b.openIn(t, m, "")
	b.broken.Store(true)
	if _, err := b.tryIn(t, m, "a"); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "free the disk") {
		t.Error(err)
	}
	b.broken.Store(false)
	if err := own.Renew(); err != nil {
		t.Error(err)
	}
	if got := b.inFile(t); !slices.Equal(got, []string{""}) {
		t.Errorf("%q", got)
	}
	b.openIn(t, m, "a")
}

// No mark is saved for a generator that cannot begin, even once the disk works again.
func TestNoMarkWithoutBeginning(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	ids := b.ids()
	o := b.options()
	o.Marks, o.Saved = m, func(time.Duration) { b.broken.Store(false) }
	b.broken.Store(true)
	if _, err := OpenOn(t.Context(), "a", ids, o); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if names := m.Names(); len(names) > 0 {
		t.Errorf("%q have marks", names)
	}
	b.openIn(t, m, "a")
}

// A name is reserved from before its mark is read until its generator is closed. Otherwise the mark
// that was read might be older than the last ids.
func TestNameIsReserved(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	first := b.openIn(t, m, "a")
	waits := func(wait func()) error {
		ids := b.ids()
		o := b.options()
		o.Marks = m
		m.sleep = func(ctx context.Context, d time.Duration) error {
			wait()
			return b.sleep(ctx, d)
		}
		_, err := OpenOn(t.Context(), "a", ids, o)
		return err
	}
	if err := waits(func() { first.Close() }); err == nil || !strings.Contains(err.Error(), `as "a"`) {
		t.Errorf("while the first runs: %v", err)
	}
	kill := func() { // like a crash
		m.file.Close()
		m = b.marks(t, mark.OS{})
	}
	kill()
	var second error
	if err := waits(func() { _, second = b.tryIn(t, m, "a") }); err != nil || second == nil ||
		!strings.Contains(second.Error(), `as "a"`) {
		t.Errorf("while the first waits: %v; %v", err, second)
	}
	kill()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	o := b.options()
	o.Marks, m.sleep = m, tick.Sleep
	if _, err := OpenOn(ctx, "a", first.ids, o); !errors.Is(err, why) {
		t.Errorf("with a context that is done: %v", err)
	}
	m.sleep = b.sleep
	b.openIn(t, m, "a").Close()
	b.openIn(t, m, "a")
}

// If several generators are opened under one name at the same time, exactly one succeeds.
func TestNameAtOnce(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	var opened atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := b.tryIn(t, m, "a"); err == nil {
				opened.Add(1)
			}
		})
	}
	all.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("%d generators have the name, want 1", n)
	}
}

// An existing file is never ignored. If it may belong to another generator, it is refused, and
// stays.
func TestNeverAnew(t *testing.T) {
	for name, c := range map[string]struct {
		file  mark.Content
		alone bool // without Marks; otherwise its name is orders
		says  string
	}{
		"alone, in a file with names":           {named("a", 1), true, "only marks with names"},
		"a name, in a file whose mark has none": {alone(1), false, "without a name"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			put(t, b.path, c.file)
			before, _ := os.ReadFile(b.path)
			for range 2 { // the first attempt must not leave a lock, or a name in use
				var err error
				if c.alone {
					_, err = b.try(t.Context())
				} else {
					m := b.marks(t, mark.OS{})
					_, err = b.tryIn(t, m, "orders")
					if _, again := b.tryIn(t, m, "orders"); fmt.Sprint(err) != fmt.Sprint(again) {
						t.Errorf("the next attempt returned %v, want %v", again, err)
					}
					m.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), b.path+":") {
					t.Errorf("%v\ndoes not say %q about %s", err, c.says, b.path)
				}
			}
			if after, _ := os.ReadFile(b.path); string(after) != string(before) {
				t.Errorf("the file has %q, want %q", after, before)
			}
		})
	}
}
