package flake_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// made is an id: its time, in ms, and its bytes.
type made struct {
	milli uint64
	bytes string
}

// formats open generators whose mark is at path.
var formats = map[string]func(t *testing.T, path string, clock tick.Clock) (next func() (made, error), stop func() error, err error){
	"flake": func(t *testing.T, path string, clock tick.Clock) (func() (made, error), func() error, error) {
		ids, err := flake.Open(t.Context(), path, 1, flake.Options{Clock: clock})
		return func() (made, error) {
			id, err := ids.Next(t.Context())
			return made{id.Milli(), string(id[:])}, err
		}, func() error { return ids.Close() }, err
	},
	"snowflake": func(t *testing.T, path string, clock tick.Clock) (func() (made, error), func() error, error) {
		ids, err := snowflake.Twitter.Open(t.Context(), path, 1, snowflake.Options{Clock: clock})
		return func() (made, error) {
			id, err := ids.Next(t.Context())
			text, _ := id.MarshalBinary()
			return made{snowflake.Twitter.Decompose(id).Milli, string(text)}, err
		}, func() error { return ids.Close() }, err
	},
	"sno": func(t *testing.T, path string, clock tick.Clock) (func() (made, error), func() error, error) {
		ids, err := sno.Open(t.Context(), path, &sno.Snapshot{Partition: sno.Partition{0, 1}}, sno.Options{Clock: clock})
		return func() (made, error) {
			id, err := ids.Next(t.Context())
			return made{id.Milli(), string(id[:])}, err
		}, func() error { return ids.Close() }, err
	},
}

// A clock that is a day ahead for a second leaves ids neither missing nor wrong: in
// the process that goes on, and in the next one after a crash in that second.
func TestClockADayAheadForASecond(t *testing.T) {
	for name, open := range formats {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				dayAhead(t, filepath.Join(dir, "timestamp"), open)
			})
		})
	}
}

func dayAhead(t *testing.T, path string, open func(*testing.T, string, tick.Clock) (func() (made, error), func() error, error)) {
	time.Sleep(25 * 365 * 24 * time.Hour) // to 2024 and later: formats have an epoch
	base, ahead := time.Now(), atomic.Int64{}
	clock := func() tick.Clock { // of a process
		return tick.ClockOf(
			func() int64 { return time.Now().UnixNano() + ahead.Load() },
			func() int64 { return int64(time.Since(base)) })
	}
	start := func(path string) (next func() (made, error)) {
		next, stop, err := open(t, path, clock())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		return next
	}
	last := made{}
	take := func(when string, next func() (made, error)) {
		for range 50 {
			id, err := next()
			now := uint64(time.Now().UnixMilli())
			if err != nil || id.bytes <= last.bytes || id.milli > now || id.milli+4 < now {
				t.Fatalf("%s: %d %x, %v, after %d %x, at %d", when, id.milli, id.bytes, err, last.milli, last.bytes, now)
			}
			last = id
			time.Sleep(20 * time.Millisecond)
		}
	}
	next := start(path)
	take("before", next)
	ahead.Store(int64(24 * time.Hour))
	take("a day ahead", next)
	crash, err := os.ReadFile(path) // what a crash leaves
	if err != nil {
		t.Fatal(err)
	}
	ahead.Store(0)
	take("right again", next)
	again := path + "-crashed"
	if err := os.WriteFile(again, crash, 0o644); err != nil {
		t.Fatal(err)
	}
	next = start(again)
	take("after a crash", next)
}
