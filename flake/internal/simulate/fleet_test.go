package simulate

import (
	"flag"
	"testing"

	"github.com/flake-go/flake/flake/workers"
)

var (
	fleetLives = flag.Int("fleet.lives", 60, "how many lives of nodes")
	fleetSeed  = flag.Uint64("fleet.seed", 0, "live this one life, and tell all of it")
)

// No id comes twice, whatever fails; where the store is restored, by the steps for it.
func TestFleet(t *testing.T) { testFleet(t, Fleet{}) }

func TestFleetRestored(t *testing.T) { testFleet(t, Fleet{Restore: Steps}) }

func TestFleetRestoredOften(t *testing.T) { testFleet(t, Fleet{Restore: Steps, Often: true}) }

// Where nobody tells of a restore, nodes notice most; what is left is what had no sign yet
// for the first node that claimed.
func TestFleetUnattended(t *testing.T) {
	lives := *fleetLives
	blind := ManyFleets(Fleet{Restore: Nothing, Store: func(s workers.Store) workers.Store { return struct{ workers.Store }{s} }}, 1, lives)
	r := ManyFleets(Fleet{Restore: Nothing}, 1, lives)
	t.Logf("of %d restores: %d ids twice, %d overlaps; without signs, of %d: %d, %d",
		r.Restores, r.Duplicates, r.Overlaps, blind.Restores, blind.Duplicates, blind.Overlaps)
	if blind.Overlaps == 0 || r.Overlaps > blind.Overlaps/2 || r.Disorders+r.PastMark+r.Stuck > 0 {
		t.Errorf("%+v\nwithout signs %+v", r, blind)
	}
}

func testFleet(t *testing.T, f Fleet) {
	if *fleetSeed != 0 {
		if r := RunFleet(f, *fleetSeed, t.Logf); r.Wrong() > 0 {
			t.Errorf("seed %d: %s; in all %+v", *fleetSeed, r.First, r)
		}
		return
	}
	r := ManyFleets(f, 1, *fleetLives)
	t.Logf("%+v", r)
	if r.Kills < r.Lives || r.None < r.Lives || r.Lost == 0 || r.Late == 0 || r.Resumed == 0 || f.Restore != Never && r.Restores == 0 {
		t.Error("the lives are too easy")
	}
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; live it again with -run %s$ -v -fleet.seed=%d", r.Seed, r.First, t.Name(), r.Seed)
	}
}
