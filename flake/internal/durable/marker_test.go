package durable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/tick"
)

func newIDs(clock func() uint64) *tick.Generator {
	return digits.Must(tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, clock))
}

func TestWithoutAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, behind := time.Now(), uint64(0)
		ids := newIDs(func() uint64 { return someTime + uint64(time.Since(start).Milliseconds()) - behind })
		c := New(ids)
		if _, _, err := ids.One(t.Context()); err != nil {
			t.Fatal(err)
		}
		at, err := c.LastSaved()
		if err := errors.Join(err, c.Ready()); err != nil || !at.IsZero() || !c.Mark().IsZero() || c.Behind() != 0 {
			t.Errorf("%v, saved at %v, the mark at %v, %v behind", err, at, c.Mark(), c.Behind())
		}
		behind = 50
		if err := c.Ready(); !errors.Is(err, tick.ErrClockBackwards) || c.Behind() != 50*time.Millisecond {
			t.Errorf("%v, %v behind", err, c.Behind())
		}
		if err := c.CatchUp(t.Context()); err != nil || c.Behind() != 0 {
			t.Errorf("%v, %v behind", err, c.Behind())
		}
		behind = 100
		c.Sleep = func(_ context.Context, d time.Duration) error { behind -= uint64(d.Milliseconds()); return nil }
		if err := c.CatchUp(t.Context()); err != nil || behind != 50 {
			t.Errorf("%v, %d ms behind", err, behind)
		}
		for range 2 {
			if err := c.Close(); err != nil || !errors.Is(c.Ready(), tick.ErrClosed) {
				t.Errorf("closed: %v, %v", err, c.Ready())
			}
		}
		if milli, used := ids.Last(); milli != someTime || used != 1 {
			t.Errorf("closed, the last id is %d:%d", milli, used)
		}
	})
}

func TestWithAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := Open(t.Context(), filepath.Join(dir, "timestamp"), newIDs(nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if at, err := c.LastSaved(); errors.Join(err, c.Ready()) != nil || c.Mark() != at.Add(Window) {
			t.Errorf("saved at %v, %v, the mark at %v", at, err, c.Mark())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(Window / 2)
		if err := c.Ready(); !errors.Is(err, tick.ErrTimestampNotSaved) {
			t.Errorf("without a disk: %v", err)
		}
		if err := c.Close(); err == nil || !errors.Is(c.Ready(), tick.ErrClosed) {
			t.Errorf("closed: %v, %v", err, c.Ready())
		}
	})
	if _, err := Open(t.Context(), filepath.Join(dir, "no", "timestamp"), newIDs(nil), Options{}); err == nil {
		t.Error("opened without a directory")
	}
}

// The Marker of a zero generator is nil.
func TestZeroMarker(t *testing.T) {
	var k *Marker
	if err := k.Ready(); !errors.Is(err, tick.ErrZero) {
		t.Error(err)
	}
	at, err := k.LastSaved()
	if err := errors.Join(err, k.CatchUp(t.Context()), k.Close()); err != nil || !at.IsZero() || !k.Mark().IsZero() ||
		k.Behind() != 0 {
		t.Errorf("%v, saved at %v, the mark at %v, %v behind", err, at, k.Mark(), k.Behind())
	}
}
