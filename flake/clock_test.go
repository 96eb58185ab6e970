package flake_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/tick"
)

// A monotonic clock continues from its first reading of the wall clock, however the wall clock is
// then set. Ids follow the monotonic clock. Open waits or fails if the wall clock is behind the
// mark.
func TestMonotonicClock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		base, set := time.Now(), atomic.Int64{}
		open := func() (*flake.Generator, error) {
			return flake.Open(t.Context(), filepath.Join(dir, "timestamp"), 7, flake.Options{Clock: tick.MonotonicOf(
				func() int64 { return time.Now().UnixNano() + set.Load() },
				func() int64 { return int64(time.Since(base)) })})
		}
		g, err := open()
		if err != nil {
			t.Fatal(err)
		}
		var last flake.ID
		for _, by := range []time.Duration{0, 24 * time.Hour, -24 * time.Hour, -time.Hour, -2 * time.Second} {
			set.Store(int64(by))
			time.Sleep(5 * time.Second)
			id, err := g.Next(t.Context())
			if err != nil || id.Compare(last) <= 0 || id.Milli() != uint64(time.Now().UnixMilli()) ||
				g.Mark().Before(id.Time()) {
				t.Errorf("clock set by %v: id %v has time %v, %v, after %v, with the mark at %v",
					by, id, id.Time(), err, last, g.Mark())
			}
			last = id
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		set.Store(-int64(time.Hour))
		if _, err := open(); !errors.Is(err, flake.ErrClockBackwards) {
			t.Errorf("Open an hour behind the mark: %v, want ErrClockBackwards", err)
		}
		set.Store(-int64(2 * time.Second))
		g, err = open()
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if id, err := g.Next(t.Context()); err != nil || id.Compare(last) <= 0 {
			t.Errorf("the first id after Open 2 s behind the mark: %v, %v, after %v", id, err, last)
		}
	})
}

// TestMonotonicClock uses fake clocks; this test uses the machine's.
func TestMonotonicClockOfTheMachine(t *testing.T) {
	before := time.Now().UnixMilli()
	clock := flake.MonotonicClock()
	for range 1000 {
		now := int64(clock())
		if after := time.Now().UnixMilli(); now < before || now > after {
			t.Fatalf("the clock shows %d, want from %d to %d", now, before, after)
		}
	}
}

// If the clock is a day ahead for a second, ids do not stop and their times stay right. This also
// holds for the next process after a crash in that second.
func (f format[ID, P, G, S]) testDayAhead(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { f.dayAhead(t, filepath.Join(dir, "timestamp")) })
}

func (f format[ID, P, G, S]) dayAhead(t *testing.T, path string) {
	time.Sleep(25 * 365 * 24 * time.Hour) // from 2000 to 2024: some epochs are after 2000
	base, ahead := time.Now(), atomic.Int64{}
	clock := func() tick.Clock { // a new process's clock
		return tick.ClockOf(
			func() int64 { return time.Now().UnixNano() + ahead.Load() },
			func() int64 { return int64(time.Since(base)) })
	}
	start := func(path string) G {
		g, err := f.open(t.Context(), path, clock())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	var last ID
	take := func(when string, g G) {
		for range 50 {
			id, err := g.Next(t.Context())
			milli, _ := g.Last()
			now := uint64(time.Now().UnixMilli())
			if err != nil || id.Compare(last) <= 0 || milli > now || milli+4 < now {
				t.Fatalf("%s: id %v has time %d, %v, after %v, at %d", when, id, milli, err, last, now)
			}
			last = id
			time.Sleep(20 * time.Millisecond) // so that the clock advances between readings
		}
	}
	g := start(path)
	take("before", g)
	ahead.Store(int64(24 * time.Hour))
	take("a day ahead", g)
	crash, err := os.ReadFile(path) // what a crash would leave
	if err != nil {
		t.Fatal(err)
	}
	ahead.Store(0)
	take("right again", g)
	again := path + "-crashed"
	if err := os.WriteFile(again, crash, 0o644); err != nil {
		t.Fatal(err)
	}
	take("after a crash", start(again))
}
