package setup

import (
	"crypto/rand"
	"log/slog"
	"testing"

	"github.com/flake-go/flake/flake/formats"
)

// A claim survives many checks, such as those of a service that keeps restarting. Other generators can claim
// ranges that do not overlap.
func TestClaim(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	here := formats.Range{Key: "here", Space: "test " + rand.Text(), First: 10, Last: 19}
	release, err := claim(here, true, log)
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 { // more than can wait to be accepted
		if _, err := claim(here, true, log); err == nil {
			t.Fatal("the same ids were claimed twice")
		}
	}
	for _, test := range []struct {
		first, last uint64
		ok          bool
	}{{0, 9, true}, {0, 10, false}, {15, 15, false}, {19, 30, false}, {20, 30, true}} {
		other := here
		other.First, other.Last = test.first, test.last
		free, err := claim(other, true, log)
		if (err == nil) != test.ok {
			t.Errorf("%d to %d: %v", test.first, test.last, err)
		}
		if err == nil {
			free()
		}
	}
	release()
	if release, err = claim(here, true, log); err != nil {
		t.Fatal(err)
	}
	release()
}
