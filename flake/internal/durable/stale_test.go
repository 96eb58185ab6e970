package durable

import (
	"errors"
	"os"
	"testing"

	"github.com/flake-go/flake/flake/internal/tick"
)

// If the mark is lost or restored from a backup, no id repeats as long as the clock is past the last
// id. The guide says so.
func TestStaleMark(t *testing.T) {
	const step, steps = 60_000, 6 // ms between ids
	for name, c := range map[string]struct {
		lost  bool
		clock int // ms after the last id
		want  error
		twice bool
	}{
		"the clock went on":                              {clock: 1},
		"lost, and the clock went on":                    {lost: true, clock: 1},
		"the clock was set back, but not to the mark":    {clock: -step * steps / 2, twice: true},
		"lost, and the clock was set back":               {lost: true, clock: -step * steps / 2, twice: true},
		"the clock was set back to well before the mark": {clock: -step * steps * 2, want: tick.ErrClockBackwards},
	} {
		b := newBench(t)
		d := b.open(t)
		d.next(t)
		d.Close()
		old, err := os.ReadFile(b.path)
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Add(1)
		d = b.open(t)
		made := map[id]bool{}
		for range steps {
			b.clock.Add(step)
			if err := d.Renew(); err != nil {
				t.Fatal(err)
			}
			made[d.next(t)] = true
		}
		kill(d)
		if err := os.WriteFile(b.path, old, 0o644); err != nil {
			t.Fatal(err)
		}
		if c.lost {
			os.Remove(b.path)
		}
		b.clock.Add(uint64(c.clock))
		d, err = b.try(t.Context())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if twice := made[d.next(t)]; twice != c.twice {
			t.Errorf("%s: an id repeats: %v", name, twice)
		}
		kill(d)
	}
}
