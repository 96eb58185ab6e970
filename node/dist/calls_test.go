package dist

import (
	"testing"
	"time"

	"github.com/flake-go/flake/node/latency"
)

// Calls are timed until they are answered: at once, aside, in their turn or behind others.
func TestLatency(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.answersLate(gate)
		r.send(
			ask("$gen_call", theirs, "flake", 1, "soon"), ask("$gen_call", theirs, "flake", 2, "late"),
			ask("$gen_call", theirs, "flake", 3, "soon"), ask("$gen_call", theirsToo, "flake", 4, "aside"),
			ask("$gen_call", theirs, "flake", 5, "wrong"),
		)
		time.Sleep(30 * time.Millisecond) // in the time of the test
		close(gate)
		if got := len(r.received()); got != 4 {
			t.Errorf("%d answers", got)
		}
		r.logged("message dropped")
		r.send(ask("$gen_call", theirs, "flake", 6, "soon"))
		r.received()
		got, want := r.proto.Latency(), map[time.Duration]uint64{latency.Bounds[0]: 2, 50 * time.Millisecond: 3}
		for i, bound := range latency.Bounds {
			if got.Calls[i] != want[bound] {
				t.Errorf("%d calls within %v, want %d", got.Calls[i], bound, want[bound])
			}
		}
		if got.Sum != 0.09 {
			t.Errorf("in all %v", got.Sum)
		}
	})
}

// Neighbours count in different histograms.
func TestHistograms(t *testing.T) {
	p, seen := &Proto{}, map[*latency.Histogram]bool{}
	for range 2 * histograms {
		seen[p.histogram()] = true
	}
	if len(seen) != histograms {
		t.Errorf("%d are used, want %d", len(seen), histograms)
	}
}
