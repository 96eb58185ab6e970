package sno

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
)

// A bench holds a generator's clock, file, disk and log.
type bench struct {
	*handClock
	path   string
	waited time.Duration
	log    bytes.Buffer
	broken atomic.Bool // writes to the disk fail
	disk   *disk       // of the generator that was opened last
}

func newBench(t *testing.T) *bench {
	return &bench{handClock: newClock(), path: filepath.Join(t.TempDir(), "timestamp")}
}

// disk is the real disk, but fails while it is broken, and keeps its lock for [bench.kill].
type disk struct {
	mark.OS
	broken *atomic.Bool
	lock   mark.Lock
}

var errFull = errors.New("no space left")

func (d *disk) Create(path string, data []byte) error {
	if d.broken.Load() {
		return errFull
	}
	return d.OS.Create(path, data)
}

func (d *disk) Overwrite(path string, offset int64, data []byte) error {
	if d.broken.Load() {
		return errFull
	}
	return d.OS.Overwrite(path, offset, data)
}

func (d *disk) Lock(path string) (mark.Lock, error) {
	lock, err := d.OS.Lock(path)
	d.lock = lock
	return lock, err
}

func (b *bench) try(t *testing.T, s *Snapshot) (*Generator, error) {
	g, err := NewGenerator(s, Options{Clock: b.now})
	if err != nil {
		t.Fatal(err)
	}
	naps := 0
	sleep := b.sleeper(&naps, &b.waited)
	d := &disk{broken: &b.broken}
	if b.disk != nil {
		b.kill() // release the lock: Close leaves the file of marks open
	}
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	marks, err := durable.OpenMarksOn(d, sleep, b.path, log, 0)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { d.lock.Close() })
	b.disk = d
	k, err := durable.OpenOn(t.Context(), "", g.passes, durable.Options{Logger: log, Marks: marks})
	if err != nil {
		return nil, err
	}
	g.passes.now.Load().ids.Limit().Extend = func(context.Context, uint64) error { return k.Renew() }
	g.marker = k
	return g, nil
}

func (b *bench) open(t *testing.T, s *Snapshot) *Generator {
	t.Helper()
	d, err := b.try(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// kill does what kill -9 does to the generator: nothing is written, and the lock is released.
func (b *bench) kill() { b.disk.lock.Close() }

func TestReopen(t *testing.T) {
	b := newBench(t)
	d := b.open(t, &Snapshot{Partition: Partition{1, 2}, SequenceMin: 10, SequenceMax: 20})
	first := take(t, d, 0)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Next(t.Context()); !errors.Is(err, flake.ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
	if s := d.Snapshot(); s.WallHi != unitsOf(someTime) || s.Sequence != 10 {
		t.Errorf("the snapshot after Close is %+v", s)
	}
	if mark := d.Mark().UnixMilli(); mark != someTime {
		t.Errorf("after Close, the mark is at %d", mark)
	}
	if err := d.Ready(); !errors.Is(err, flake.ErrClosed) {
		t.Errorf("Ready after Close: %v", err)
	}
	d = b.open(t, nil)
	if d.Partition() != first.Partition || d.Snapshot().SequenceMin != 10 || d.Snapshot().SequenceMax != 20 {
		t.Errorf("reopened, the generator does not continue from the file: %+v", d.Snapshot())
	}
	if id := take(t, d, 0); id.Milli != someTime+4 || id.TickTock {
		t.Errorf("%+v after %+v", id, first)
	}
	d.Close()
	b.add(100)
	if d = b.open(t, &Snapshot{Partition: Partition{3, 4}}); d.Partition() != (Partition{3, 4}) ||
		d.PerTick() != 65536 {
		t.Errorf("the generator ignores the given snapshot: %+v", d.Snapshot())
	}
}

func TestCrashIsWaitedOut(t *testing.T) {
	b := newBench(t)
	d := b.open(t, nil)
	take(t, d, 0)
	b.kill()
	if id := take(t, b.open(t, nil), 0); id.Milli <= someTime+3000 || id.TickTock || b.waited < durable.Window {
		t.Errorf("%+v, waited %v", id, b.waited)
	}
}

// A generator can be opened after a crash if the clock was set back once, whether before the crash
// or after it.
func TestClockSetBackAcrossCrashes(t *testing.T) {
	b := newBench(t)
	d := b.open(t, nil)
	take(t, d, 0)
	b.add(-3600_000)
	if id := take(t, d, 0); id.Milli != someTime-3600_000 || !id.TickTock {
		t.Errorf("an hour back: %+v", id)
	}
	b.kill()
	b.add(10_000)
	d = b.open(t, nil)
	if id := take(t, d, 0); id.Milli != someTime-3590_000 || !id.TickTock || b.waited != 0 {
		t.Errorf("after a crash: %+v, waited %v", id, b.waited)
	}
	if mark := d.Mark().UnixMilli(); mark != someTime-3587_000 {
		t.Errorf("the mark is at %d", mark)
	}
	b.add(7200_000) // later than all ids
	if id := take(t, d, 0); !id.TickTock {
		t.Errorf("two hours later: %+v", id)
	}
	b.kill()
	b.add(-1800_000)
	d = b.open(t, nil)
	if id := take(t, d, 0); id.Milli != someTime+1810_000 || id.TickTock ||
		!strings.Contains(b.log.String(), "behind") {
		t.Errorf("set back after a crash: %+v; %s", id, b.log.String())
	}
}

// After a crash, the clock is set back to 1 s before the last use of the other bit. Open waits for
// that second, and then uses the bit again.
func TestStartWaitsForSafeTime(t *testing.T) {
	b := newBench(t)
	d := b.open(t, nil)
	take(t, d, 0)
	b.add(-5000)
	take(t, d, 0)
	b.add(60_000)
	take(t, d, 0)
	b.kill()
	b.add(-56_000)
	d = b.open(t, nil)
	if id := take(t, d, 0); id.Milli != someTime+4 || id.TickTock || b.waited < time.Second ||
		b.waited > 1010*time.Millisecond {
		t.Errorf("%+v, waited %v", id, b.waited)
	}
}

func TestStartRefusedInUnsafePast(t *testing.T) {
	b := newBench(t)
	d := b.open(t, nil)
	take(t, d, 0)
	b.add(-3600_000)
	take(t, d, 0)
	b.kill()
	b.add(-3600_000)
	for range 2 { // a failed Open changes nothing
		d, err := b.try(t, nil)
		if !errors.Is(err, flake.ErrClockBackwards) {
			t.Fatalf("%v, %v", d, err)
		}
	}
	b.add(3600_000)
	if id := take(t, b.open(t, nil), 0); !id.TickTock {
		t.Errorf("%+v", id)
	}
}

// The tick-tock bit is on disk before any id has it.
func TestTickTockIsDurableFirst(t *testing.T) {
	b := newBench(t)
	d := b.open(t, nil)
	take(t, d, 0)
	b.broken.Store(true)
	b.add(-1000)
	for range 2 {
		if id, err := d.Next(t.Context()); !errors.Is(err, flake.ErrTimestampNotSaved) {
			t.Fatalf("%v, %v", id, err)
		}
	}
	b.broken.Store(false)
	if id := take(t, d, 0); !id.TickTock {
		t.Errorf("%+v", id)
	}
	b.kill()
	b.add(5000)
	if s := b.open(t, nil).Snapshot(); s.Drifts != 1 || s.WallSafe != unitsOf(someTime) {
		t.Errorf("%+v", s)
	}
}

// A generator continues from the given snapshot if there is no file. A file of another format is an
// error.
func TestOpenOn(t *testing.T) {
	b := newBench(t)
	units := unitsOf(someTime)
	ahead := &Snapshot{Now: units + 1000, WallHi: units + 1000, WallSafe: units - 1, Drifts: 4}
	b.open(t, ahead)
	b.kill() // before the first id
	d := b.open(t, nil)
	if s := d.Snapshot(); s.Drifts != 5 || s.WallSafe != ahead.WallHi {
		t.Errorf("from a snapshot: %+v", s)
	}
	if id := take(t, d, 0); !id.TickTock || id.Milli != someTime {
		t.Errorf("from a snapshot: %+v", id)
	}
	d.Close()
	b.add(10_000)
	for _, c := range []struct {
		words []uint64
		says  string
	}{
		{nil, "0 words"}, {[]uint64{1}, "1 words"}, {[]uint64{1, 0, 9, 0}, "4 words"},
		{[]uint64{1 << 16, 0, 9, 0, Epoch}, "word 1 "}, {[]uint64{1, 0, 9, 1 << 32, Epoch}, "word 4 "},
		{[]uint64{1, 5, 5, 0, Epoch}, "from 5 to 5"}, {[]uint64{1, 0, 9, 0, lastTick + 1}, "word 5 "},
	} {
		b.kill()
		f, _, err := mark.Open(mark.OS{}, b.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Save(mark.Content{Marks: map[string]mark.Mark{"": {Milli: someTime, Latest: someTime,
			Words: c.words}}}); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if d, err := b.try(t, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("with the words %d: %v, %v", c.words, d, err)
		}
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	if d, err := Open(t.Context(), path, &Snapshot{SequenceMin: 1, SequenceMax: 2}, Options{}); err == nil || d != nil {
		t.Errorf("from an invalid snapshot: %v", err)
	}
	first, err := Open(t.Context(), path, nil, Options{})
	if err == nil {
		err = first.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Snapshot{nil, {Partition: Partition{1, 2}}} {
		began := time.Now().Add(-4 * time.Millisecond) // a tick
		d, err := Open(t.Context(), path, s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := first.Partition()
		if s != nil {
			want = s.Partition
		}
		if id, err := d.Next(t.Context()); id.Decompose().Partition != want || err != nil {
			t.Errorf("%v, %v, want partition %v", id, err, want)
		}
		if at, err := d.LastSaved(); at.Before(began) || err != nil {
			t.Errorf("saved at %v, %v", at, err)
		}
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := Open(ctx, t.TempDir(), nil, Options{}); err == nil {
		t.Errorf("opened a directory as the file: %v", d)
	}
}

// If the clock was ahead and no ids were made then, the mark follows the clock back.
func TestMarkFollowsTheClockBack(t *testing.T) {
	b := newBench(t)
	d := b.open(t, nil)
	take(t, d, 0)
	for _, ahead := range []int{3600_000, -3600_000} {
		b.add(ahead)
		if err := d.marker.Renew(); err != nil {
			t.Fatal(err)
		}
	}
	if mark := d.Mark().UnixMilli(); mark != someTime+3000 {
		t.Errorf("the mark is at %d", mark)
	}
}
