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

// A clock far ahead takes numbers, which are released, and claimed below what that spent.
func TestFleetFar(t *testing.T) {
	if r := testFleet(t, Fleet{Far: true}); *fleetSeed == 0 && (r.Spent == 0 || r.Below == 0) {
		t.Error("nothing was spent ahead")
	}
}

// If no operator reports a restore, the nodes notice most of them. What remains had no sign yet
// when the first node claimed. A few fleets do not show the difference: most restores do no harm.
func TestFleetUnattended(t *testing.T) {
	lives := *fleetLives
	r := ManyFleets(Fleet{Restore: Nothing}, 1, lives)
	t.Logf("of %d restores: %d ids twice, overlaps in %d of %d fleets", r.Restores, r.Duplicates, r.Shared, lives/members)
	if r.Restores == 0 || r.Disorders+r.PastMark+r.Stuck > 0 {
		t.Errorf("%+v", r)
	}
	if lives < 1000 {
		return
	}
	blind := ManyFleets(Fleet{Restore: Nothing, Store: func(s workers.Store) workers.Store { return struct{ workers.Store }{s} }}, 1, lives)
	t.Logf("without signs, of %d: %d, in %d", blind.Restores, blind.Duplicates, blind.Shared)
	if r.Shared*4 > blind.Shared*3 {
		t.Errorf("%+v\nwithout signs %+v", r, blind)
	}
}

func testFleet(t *testing.T, f Fleet) (r FleetReport) {
	if *fleetSeed != 0 {
		if r = RunFleet(f, *fleetSeed, t.Logf); r.Wrong() > 0 {
			t.Errorf("seed %d: %s; in all %+v", *fleetSeed, r.First, r)
		}
		return r
	}
	r = ManyFleets(f, 1, *fleetLives)
	t.Logf("%+v", r)
	if r.Kills < r.Lives || r.None < r.Lives || r.Lost == 0 || r.Late == 0 || r.Resumed == 0 || f.Restore != Never && r.Restores == 0 {
		t.Error("the lives are too easy")
	}
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; live it again with -run %s$ -v -fleet.seed=%d", r.Seed, r.First, t.Name(), r.Seed)
	}
	return r
}
