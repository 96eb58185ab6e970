package flake_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// A clock that is a day ahead for a second leaves ids neither missing nor wrong: in
// the process that goes on, and in the next one after a crash in that second.
func (f format[ID, P, G]) testDayAhead(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { f.dayAhead(t, filepath.Join(dir, "timestamp")) })
}

func (f format[ID, P, G]) dayAhead(t *testing.T, path string) {
	time.Sleep(25 * 365 * 24 * time.Hour) // to 2024 and later: formats have an epoch
	base, ahead := time.Now(), atomic.Int64{}
	clock := func() tick.Clock { // of a process
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
				t.Fatalf("%s: %v of %d, %v, after %v, at %d", when, id, milli, err, last, now)
			}
			last = id
			time.Sleep(20 * time.Millisecond)
		}
	}
	g := start(path)
	take("before", g)
	ahead.Store(int64(24 * time.Hour))
	take("a day ahead", g)
	crash, err := os.ReadFile(path) // what a crash leaves
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
