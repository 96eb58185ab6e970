package durable

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// until calls f until it returns true.
func until(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the condition is false after a minute")
		}
	}
}

func (b *bench) run(t *testing.T, beat <-chan time.Time) *node {
	t.Helper()
	d, err := b.try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.keep(beat)
	t.Cleanup(func() { d.Close() })
	return d
}

// A caller gets an id even if the machine slept until after the mark.
func TestCallPastTheMark(t *testing.T) {
	b := newBench(t)
	d := b.run(t, nil) // only calls move the mark
	d.next(t)
	for range 20 {
		b.clock.Add(3600_000)
		until(t, func() bool {
			id, err := d.try()
			if errors.Is(err, d.marks.attempts.Slow()) { // possible on a slow machine
				return false
			}
			if id.milli != b.clock.Load() || b.saved(t) < id.milli || err != nil {
				t.Errorf("%v, %v with the mark at %d", id, err, b.saved(t))
			}
			return true
		})
	}
}

// Each attempt at a save is reported, successful or not.
func TestSavedIsReported(t *testing.T) {
	b := newBench(t)
	reported := 0
	o := b.options()
	o.Saved = func(time.Duration) { reported++ }
	d, err := b.node(t.Context(), disk{broken: &b.broken}, o)
	if err != nil {
		t.Fatal(err)
	}
	b.broken.Store(true)
	if err := d.Renew(); !errors.Is(err, errFull) {
		t.Error(err)
	}
	b.broken.Store(false)
	if err := d.Close(); reported != 3 || err != nil {
		t.Errorf("%d reports, want 3; %v", reported, err)
	}
}

// The log says when saves begin to fail or to hang, and when they succeed again.
func TestTroubleIsLoggedOnce(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	errSlow, result := d.marks.attempts.Slow(), error(nil)
	logged := len(b.logged())
	for i, c := range []struct {
		err  error // of the attempt; errSlow: it has not ended yet
		says string
	}{
		{nil, ""}, {errFull, "cannot be saved"}, {errFull, ""}, {errSlow, ""}, {nil, "saved again"}, {nil, ""},
		{errSlow, "not answered"}, {errSlow, ""}, {errFull, "cannot be saved"}, {nil, "saved again"},
		{errSlow, "not answered"}, {nil, "saved again"},
	} {
		if c.err != errSlow || result == nil { // as package attempt calls it
			d.marks.report(result, c.err)
			result = c.err
		}
		fresh := b.logged()[logged:]
		if logged += len(fresh); strings.Count(fresh, "\n") != min(len(c.says), 1) || !strings.Contains(fresh, c.says) {
			t.Errorf("%d: %v logs %q", i, c.err, fresh)
		}
	}
}

// A caller that finds the mark moved does not wait for another move.
func TestMarkMovedMeanwhile(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	b.clock.Add(window)
	if err := d.await(done(t), d.ids.Limit().Milli()); err != nil {
		t.Error(err)
	}
	// Neither does a caller that needs a time past the mark, if the clock has since been set back.
	if err := d.await(done(t), b.clock.Load()+1); err != nil {
		t.Error(err)
	}
	b.clock.Add(1)
	if err := d.await(done(t), b.clock.Load()); !errors.Is(err, context.Canceled) {
		t.Errorf("past the mark: %v", err)
	}
}

// After Close there are no more saves, which would fail and be logged.
func TestCloseEndsTheRenewal(t *testing.T) {
	beat := make(chan time.Time)
	close(beat) // so that receiving from it never blocks
	for range 10 {
		b := newBench(t)
		d := b.run(t, beat)
		err := d.Close()
		d.marks.running.Wait()
		if _, trouble := d.LastSaved(); err != nil || trouble != nil || strings.Contains(b.logged(), "ERROR") {
			t.Fatalf("%v, %v, logged %q", err, trouble, b.logged())
		}
	}
}

// Open works with its defaults, on the machine's disk.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	synctest.Test(t, func(t *testing.T) {
		now := func() uint64 { return tick.MilliOf(time.Now()) }
		open := func() (*Marker, error) {
			ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, now)
			if err != nil {
				t.Fatal(err)
			}
			return Open(t.Context(), path, ids, Options{})
		}
		k, err := open()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if k.Mark().Before(time.Now()) {
			t.Errorf("the mark stays at %v", k.Mark())
		}
		if other, err := open(); other != nil || !errors.Is(err, mark.ErrLocked) {
			t.Errorf("opened twice: %v", err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestMarkIsKeptAhead(t *testing.T) {
	b, beat := newBench(t), make(chan time.Time)
	d := b.run(t, beat)
	b.clock.Add(1000)
	beat <- time.Time{}
	until(t, func() bool { return d.Mark().UnixMilli() == someTime+1000+int64(window) })
}

func TestFullDiskIsRiddenOut(t *testing.T) {
	b := newBench(t)
	d := b.run(t, time.Tick(renewal))
	b.broken.Store(true)
	until(t, func() bool { _, err := d.LastSaved(); return err != nil })
	end := b.saved(t)
	b.clock.Store(end)
	if id := d.next(t); id.milli != end {
		t.Errorf("%v does not have the mark's millisecond", id)
	}
	b.clock.Store(end + 1)
	for range 3 {
		if id, err := d.try(); !errors.Is(err, tick.ErrTimestampNotSaved) || !errors.Is(err, errFull) {
			t.Errorf("past the mark: %v, %v", id, err)
		}
	}
	b.broken.Store(false)
	until(t, func() bool {
		id, err := d.try()
		return err == nil && id.milli == end+1 && b.saved(t) >= end+1
	})
	until(t, func() bool { return strings.Contains(b.logged(), "saved again") }) // which is logged last
	if _, err := d.LastSaved(); err != nil {
		t.Error(err)
	}
	for _, word := range []string{"unless it is saved first", "saved again"} {
		if n := strings.Count(b.logged(), word); n != 1 {
			t.Errorf("%q is logged %d times: %s", word, n, b.logged())
		}
	}
}

func TestCloseOnAFullDisk(t *testing.T) {
	b := newBench(t)
	d := b.run(t, time.Tick(renewal))
	b.clock.Add(7)
	last := d.next(t)
	b.broken.Store(true)
	if err := d.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if _, err := d.LastSaved(); !errors.Is(err, errFull) {
		t.Errorf("after a failed save: %v", err)
	}
	b.broken.Store(false)
	if id := b.open(t).next(t); !id.after(last) {
		t.Errorf("%v after %v", id, last)
	}
}

// hung is a disk whose SyncDir and Overwrite hang until answer has a value.
type hung struct {
	mark.OS
	answer chan struct{}
}

func (h hung) SyncDir(path string) error {
	<-h.answer
	return h.OS.SyncDir(path)
}

func (h hung) Overwrite(path string, offset int64, data []byte) error {
	<-h.answer
	return h.OS.Overwrite(path, offset, data)
}

func TestHungDiskHoldsNobodyUp(t *testing.T) {
	b := newBench(t)
	h := hung{answer: make(chan struct{}, 1)}
	h.answer <- struct{}{} // for the start
	d, err := b.node(t.Context(), h, b.options())
	if err != nil {
		t.Fatal(err)
	}
	d.keep(time.Tick(renewal))
	b.clock.Add(3600_000)
	for range 1000 { // if each waited for Patience, this would take too long
		if id, err := d.try(); !errors.Is(err, tick.ErrTimestampNotSaved) {
			t.Fatalf("%v, %v", id, err)
		}
	}
	if err := d.ids.Ready(); !errors.Is(err, tick.ErrTimestampNotSaved) {
		t.Errorf("ready: %v", err)
	}
	close(h.answer)
	until(t, func() bool { _, err := d.try(); return err == nil })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// While the disk hangs, a call that does not wait fails immediately. A call whose context is done
// fails with the context's cause.
func TestHungDiskAndContexts(t *testing.T) {
	b := newBench(t)
	h := hung{answer: make(chan struct{}, 1)}
	h.answer <- struct{}{}
	d, err := b.node(t.Context(), h, b.options())
	if err != nil {
		t.Fatal(err)
	}
	d.keep(time.Tick(renewal))
	defer d.Close()
	defer close(h.answer)
	b.clock.Add(3600_000)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for range 1000 {
		if _, _, _, err := d.ids.TryReserve(1); !errors.Is(err, tick.ErrTimestampNotSaved) ||
			errors.Is(err, d.marks.attempts.Slow()) {
			t.Fatalf("without a wait: %v", err)
		}
		if _, _, _, err := d.ids.Reserve(ctx, 1); !errors.Is(err, why) {
			t.Fatalf("with a context that is done: %v", err)
		}
	}
}

// If no ids were made, a clock that went far ahead does not move the mark far ahead.
func TestCloseWithTheClockFarAhead(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	b.clock.Add(3600_000)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if at := b.saved(t); at != someTime+window {
		t.Errorf("the mark is at %d", at)
	}
}

// The mark never passes the latest possible time.
func TestMarkAtTheEndOfTime(t *testing.T) {
	b := newBench(t)
	b.clock.Store(tick.MaxLast - 5)
	d := b.open(t)
	d.next(t)
	if at := b.saved(t); at != tick.MaxLast {
		t.Errorf("the mark is at %d", at)
	}
}

// After a failed save, no id is later than the previous mark.
func TestFailedSaveMovesNothing(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	end := b.saved(t)
	b.clock.Add(1000)
	b.broken.Store(true)
	if err := d.Renew(); !errors.Is(err, errFull) {
		t.Error(err)
	}
	b.clock.Store(end + 1)
	if milli, _, _, err := d.ids.TryReserve(1); !errors.Is(err, tick.ErrTimestampNotSaved) {
		t.Errorf("an id at %d, with the mark at %d: %v", milli, end, err)
	}
}
