package durable

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// unlocked is a disk that ignores locks.
type unlocked struct{ mark.OS }

type ignored struct{}

func (unlocked) Lock(string) (mark.Lock, error) { return ignored{}, nil }
func (ignored) Keep() (bool, error)             { return false, nil }
func (ignored) Close() error                    { return nil }

// If another process uses the file, ids end at once, not at the mark: in the tick of the last id, and
// for a call that began before. The log says why, once, and the file stays as it is.
func TestSharedFile(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, unlocked{})
	first, second := b.openIn(t, m, "a"), b.openIn(t, m, "b")
	m.begin(nil) // only calls and the test move the marks
	first.keep(nil)
	second.keep(nil)
	b.clock.Add(window)
	first.next(t)
	put(t, b.path+".other", named("a", someTime+9000)) // the file of a process that ignores the lock
	other, err := os.ReadFile(b.path + ".other")
	if err == nil {
		err = os.WriteFile(b.path, other, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	first.next(t)
	m.beat()
	for _, d := range []*node{first, second} {
		for _, wait := range []uint64{0, 1, 2 * window} {
			b.clock.Add(wait)
			_, _, _, err := d.ids.TryReserve(1)
			if !errors.Is(err, tick.ErrUsedUp) && !errors.Is(err, tick.ErrTimestampNotSaved) {
				t.Errorf("after %d ms: %v", wait, err)
			}
			m.beat()
		}
		if _, err := d.try(); !errors.Is(err, tick.ErrTimestampNotSaved) || !errors.Is(err, mark.ErrShared) {
			t.Errorf("a call: %v", err)
		}
		if err := d.Ready(); !errors.Is(err, mark.ErrShared) {
			t.Errorf("ready: %v", err)
		}
	}
	if _, err := b.tryIn(t, m, "c"); !errors.Is(err, mark.ErrShared) || strings.Contains(err.Error(), "free the disk") {
		t.Errorf("another generator: %v", err)
	}
	if err := m.Remember(&mark.Number{}); !errors.Is(err, mark.ErrShared) {
		t.Errorf("a number: %v", err)
	}
	if err := m.Close(); !errors.Is(err, mark.ErrShared) {
		t.Errorf("closed: %v", err)
	}
	if n := strings.Count(b.logged(), "ERROR"); n != 1 || !strings.Contains(b.logged(), "another node may make the same") {
		t.Errorf("%d errors are logged: %s", n, b.logged())
	}
	if left, err := os.ReadFile(b.path); string(left) != string(other) {
		t.Errorf("the other's file was overwritten, %v", err)
	}
}

// A process that waits for the mark of a running one does not start.
func TestStartOnASharedFile(t *testing.T) {
	b := newBench(t)
	running := b.openIn(t, b.marks(t, unlocked{}), "")
	m := b.marks(t, unlocked{})
	sleep := m.sleep
	m.sleep = func(ctx context.Context, d time.Duration) error {
		err := sleep(ctx, d)
		running.Renew()
		return err
	}
	if _, err := b.tryIn(t, m, ""); !errors.Is(err, mark.ErrShared) || b.waited == 0 {
		t.Errorf("%v, after %v", err, b.waited)
	}
	running.next(t)
}

// A start logs that half of the file is damaged, and continues with the other half.
func TestDamagedHalf(t *testing.T) {
	for half, name := range []string{"first", "second"} {
		b := newBench(t)
		d := b.open(t)
		last := d.next(t)
		kill(d)
		data, err := os.ReadFile(b.path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2*half+20] ^= 1
		if err := os.WriteFile(b.path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first save mends it
			b.log.Reset()
			d = b.open(t)
			if id := d.next(t); !id.after(last) || b.waited < Window {
				t.Errorf("%v after %v, waited %v", id, last, b.waited)
			}
			kill(d)
			logged := strings.Contains(b.logged(), "level=WARN") && strings.Contains(b.logged(), "half="+name)
			if want := name != ""; logged != want {
				t.Errorf("logged %s", b.logged())
			}
			name = ""
		}
	}
}
