package simulate

import (
	"flag"
	"testing"
)

var (
	fleetLives = flag.Int("fleet.lives", 20, "how many nodes to run, in fleets of 5")
	fleetSeed  = flag.Uint64("fleet.seed", 0, "run only the fleet of this seed, and trace it")
)

// No id repeats, whatever fails. In the two tests below, the store is restored, and an operator
// follows the documented steps.
func TestFleet(t *testing.T) { testFleet(t, Fleet{}) }

func TestFleetRestored(t *testing.T) { testFleet(t, Fleet{Restore: Steps}) }

func TestFleetRestoredOften(t *testing.T) { testFleet(t, Fleet{Restore: Steps, Often: true}) }

// Keys of numbers are deleted while their owners run.
func TestFleetDeleted(t *testing.T) {
	if r := testFleet(t, Fleet{Often: true}); *fleetSeed == 0 && r.Removed == 0 {
		t.Error("no key was deleted")
	}
}

// Nodes whose clock is far ahead take numbers, which are released and then claimed below the
// spent time.
func TestFleetFar(t *testing.T) {
	if r := testFleet(t, Fleet{Far: true}); *fleetSeed == 0 && (r.Spent == 0 || r.Below == 0) {
		t.Error("no release left a spent period, or no claim was below one")
	}
}

// Two nodes with one file whose lock has no effect do not make the same ids.
func TestFleetShared(t *testing.T) {
	if r := testFleet(t, Fleet{Shared: true}); *fleetSeed == 0 && r.Shares < r.Lives/2 {
		t.Errorf("only %d nodes with the disk of another", r.Shares)
	}
}

// Without an operator, the nodes notice most restores by signs in the store. Ids repeat if a node
// claims a number before any node has seen a sign. Since most restores do no harm, only many fleets
// show that signs help.
func TestFleetUnattended(t *testing.T) {
	lives := *fleetLives
	r := ManyFleets(Fleet{Restore: Nothing}, 1, lives)
	t.Logf("%d restores: %d ids repeat, overlaps in %d of %d fleets", r.Restores, r.Duplicates, r.Shared, lives/fleetSize)
	if r.Restores == 0 || r.Disorders+r.PastMark+r.Stuck > 0 {
		t.Errorf("%+v", r)
	}
	if lives < 1000 {
		return
	}
	without := ManyFleets(Fleet{Restore: Nothing, Store: blind}, 1, lives)
	t.Logf("without signs, %d restores: %d ids repeat, overlaps in %d fleets",
		without.Restores, without.Duplicates, without.Shared)
	if r.Shared*4 > without.Shared*3 {
		t.Errorf("%+v\nwithout signs %+v", r, without)
	}
}

func testFleet(t *testing.T, f Fleet) (r FleetReport) {
	if *fleetSeed != 0 {
		if r = RunFleet(f, *fleetSeed, t.Logf); r.Wrong() > 0 {
			t.Errorf("seed %d: %s; report: %+v", *fleetSeed, r.First, r)
		}
		return r
	}
	r = ManyFleets(f, 1, *fleetLives)
	t.Logf("%+v", r)
	if r.Kills < r.Lives || r.Damages == 0 || r.None < r.Lives || r.Lost == 0 || r.Late == 0 || r.Resumed == 0 ||
		f.Restore != Never && r.Restores == 0 {
		t.Error("the simulation is too easy")
	}
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; repeat it with -run %s$ -v -fleet.seed=%d", r.Seed, r.First, t.Name(), r.Seed)
	}
	return r
}
