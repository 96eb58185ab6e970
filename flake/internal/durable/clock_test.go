package durable

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// If no ids were made while the clock was ahead, ids can be made once it is right again, even after
// a crash.
func TestMarkOfAClockThatWasAhead(t *testing.T) {
	for name, asked := range map[string]bool{"no ids then": false, "an id then": true} {
		b := newBench(t)
		d := b.open(t)
		before := d.next(t)
		b.clock.Add(24 * 3600_000)
		if err := d.Renew(); err != nil || b.saved(t) != b.clock.Load()+window {
			t.Fatalf("%s: %v, the mark is %d", name, err, b.saved(t))
		}
		if asked {
			d.next(t)
		}
		b.clock.Store(someTime + 1000)
		if err := d.Renew(); err != nil {
			t.Fatal(err)
		}
		_, err := d.try()
		if !asked && err != nil || asked && !errors.Is(err, tick.ErrClockBackwards) {
			t.Errorf("%s: %v", name, err)
		}
		kill(d)
		d, err = b.try(t.Context())
		if asked {
			if !errors.Is(err, tick.ErrClockBackwards) {
				t.Errorf("%s: a start: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if id := d.next(t); !id.after(before) || b.waited > Window+time.Millisecond {
			t.Errorf("%s: %v after %v, waited for %v", name, id, before, b.waited)
		}
		kill(d)
	}
}

// The clock is checked whenever the mark is moved.
func TestClockIsWatched(t *testing.T) {
	b, beat := newBench(t), make(chan time.Time)
	d := b.run(t, beat)
	d.next(t)
	b.clock.Store(someTime - 3600_000)
	beat <- time.Time{}
	until(t, func() bool { return strings.Contains(b.logged(), "the clock is behind the last id") })
}

// doubting is a source that reports a clock far ahead.
type doubting struct {
	*tick.Generator
	ahead time.Duration
}

func (d *doubting) Doubted() time.Duration { return d.ahead }

// When the clock goes far ahead or back, the log says what to do. It also says when the clock is
// right again.
func TestClockIsReported(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	clock := &doubting{Generator: d.ids}
	d.source = clock
	d.next(t)
	logged := len(b.logged())
	for i, c := range []struct {
		clock uint64 // ms after someTime
		ahead time.Duration
		says  string
	}{
		{0, 0, ""}, {1, 4 * time.Millisecond, "correct it if it is wrong"}, {9, 4 * time.Millisecond, ""},
		{11, 0, "no longer far ahead"},
		{1, time.Hour, "correct it if it is wrong"}, {2, time.Hour, ""}, {3, 0, "no longer far ahead"}, {4, 0, ""},
		{5, time.Hour, "correct it if it is wrong"}, {3600_006, 0, "ids follow it"}, {3600_006, 0, ""},
		{3600_006 - window, 0, ""},
		{3600_005 - window, 0, "a worker id (or id, or partition) that was never used"}, {1, 0, ""},
		{3600_006 - window, 0, "no longer behind"}, {3600_006 - window, 0, ""},
	} {
		b.clock.Store(someTime + c.clock)
		clock.ahead = c.ahead
		d.watch()
		if c.clock == 3600_006 {
			if err := d.Renew(); err != nil {
				t.Fatal(err)
			}
			d.next(t)
		}
		fresh := b.logged()[logged:]
		if logged += len(fresh); strings.Count(fresh, "\n") != min(len(c.says), 1) || !strings.Contains(fresh, c.says) {
			t.Errorf("%d: logs %q", i, fresh)
		}
	}
}
