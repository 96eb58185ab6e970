package durable

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/internal/mark"
)

// A worker is stored with the mark of its name, and is lost with that mark.
func TestStoredWorker(t *testing.T) {
	b := newBench(t)
	fresh := uint64(1 << 40)
	give := func() uint64 { fresh++; return fresh }
	stored := func(m *Marks, name string, want uint64, wantKept bool) {
		t.Helper()
		n, kept, err := m.StoredWorker(name, "here", 1<<48-1, give)
		if n != want || kept != wantKept || err != nil {
			t.Errorf("%q: %d, kept %v, %v; want %d, %v", name, n, kept, err, want, wantKept)
		}
	}
	m := b.marks(t, disk{broken: &b.broken})
	stored(m, "", 1<<40+1, false)
	stored(m, "a", 1<<40+2, false)
	stored(m, "", 1<<40+1, false) // not written yet
	b.broken.Store(true)
	if _, err := b.tryIn(t, m, ""); !errors.Is(err, errFull) {
		t.Error(err)
	}
	stored(m, "a", 1<<40+2, false)
	b.broken.Store(false)
	b.openIn(t, m, "").next(t)
	stored(m, "", 1<<40+1, true)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.StoredWorker("", "here", 1<<48-1, give); !errors.Is(err, errEnded) {
		t.Errorf("after Close: %v", err)
	}

	again := b.marks(t, disk{broken: &b.broken})
	stored(again, "", 1<<40+1, true)
	stored(again, "a", 1<<40+2, true)
	if _, _, err := again.StoredWorker("a", "here", 1<<40+2, give); err != nil {
		t.Errorf("at its limit: %v", err)
	}
	if _, _, err := again.StoredWorker("a", "here", 1<<40, give); err == nil ||
		!strings.Contains(err.Error(), "1099511627778, is above 1099511627776; it was left unchanged") {
		t.Errorf("beyond its limit: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}

	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	m = b.marks(t, disk{broken: &b.broken})
	stored(m, "", 1<<40+3, false)
	if n, kept, err := m.StoredWorker("b", "", 1<<48-1, give); n != 1<<40+4 || kept || err != nil {
		t.Errorf("on an unknown machine: %d, %v, %v", n, kept, err)
	}
}

// Drawn returns the worker that was drawn, not the one in the file.
func TestDrawn(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	drawn, saved := mark.Worker{Worker: 1, Machine: "a"}, mark.Worker{Worker: 2, Machine: "b"}
	m.workers["both"], m.workers["saved"] = drawn, saved
	m.saved.Workers = map[string]mark.Worker{"both": saved, "saved": saved}
	for name, want := range map[string]mark.Worker{"both": drawn, "saved": saved, "none": {}} {
		if got := Drawn(m, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !m.saving.TryLock() {
		t.Error("Drawn has not released the lock")
	}
}

// On another machine, or if no machine is stored, a new worker is drawn, once.
func TestStoredWorkerOfAnotherMachine(t *testing.T) {
	b := newBench(t)
	file, _, err := mark.Open(mark.OS{}, b.path)
	if err != nil {
		t.Fatal(err)
	}
	before := alone(markAt(b.clock.Load() - 1).Milli)
	before.Workers = map[string]mark.Worker{"": {Worker: 1}}
	if err := errors.Join(file.Save(before), file.Close()); err != nil {
		t.Fatal(err)
	}
	fresh := uint64(1)
	give := func() uint64 { fresh++; return fresh }
	for _, life := range []struct {
		machine string
		want    uint64
		kept    bool
	}{{"a", 2, false}, {"a", 2, true}, {"b", 3, false}, {"a", 4, false}, {"a", 4, true}} {
		m := b.marks(t, disk{broken: &b.broken})
		if n, kept, err := m.StoredWorker("", life.machine, 10, give); n != life.want || kept != life.kept || err != nil {
			t.Errorf("on %s: %d, %v, %v", life.machine, n, kept, err)
		}
		last := markAt(b.clock.Load())
		if id := b.openIn(t, m, "").next(t); id.milli < last.Milli {
			t.Errorf("%v is before the mark, %d", id, last.Milli)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A worker is added to a file of an earlier release, which has only a mark; the mark stays.
func TestStoredWorkerOfEarlierRelease(t *testing.T) {
	b := newBench(t)
	file, _, err := mark.Open(mark.OS{}, b.path)
	if err != nil {
		t.Fatal(err)
	}
	last := markAt(b.clock.Load() - 1)
	if err := errors.Join(file.Save(alone(last.Milli)), file.Close()); err != nil {
		t.Fatal(err)
	}
	m := b.marks(t, disk{broken: &b.broken})
	if n, kept, err := m.StoredWorker("", "here", 10, func() uint64 { return 7 }); n != 7 || kept || err != nil {
		t.Errorf("%d, %v, %v", n, kept, err)
	}
	if id := b.openIn(t, m, "").next(t); id.milli <= last.Milli {
		t.Errorf("%v is not after %d", id, last.Milli)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(b.path); !strings.Contains(string(data), `"workers":{"":{"worker":7,"machine":"here"}}`) {
		t.Errorf("%q, %v", data, err)
	}
}
