package simulate

import (
	"flag"
	"testing"
)

var (
	fleetLives = flag.Int("fleet.lives", 1000, "how many lives of nodes")
	fleetSeed  = flag.Uint64("fleet.seed", 0, "live this one life, and tell all of it")
)

func TestFleet(t *testing.T) { testFleet(t, Fleet{}) }

func TestFleetRestored(t *testing.T) { testFleet(t, Fleet{Restore: Steps}) }

func TestFleetSlow(t *testing.T) { testFleet(t, Fleet{Restore: Slow}) }

func testFleet(t *testing.T, f Fleet) {
	if *fleetSeed != 0 {
		if r := RunFleet(f, *fleetSeed, t.Logf); r.Wrong() > 0 {
			t.Errorf("seed %d: %s; in all %+v", *fleetSeed, r.First, r)
		}
		return
	}
	r := ManyFleets(f, 1, *fleetLives)
	t.Logf("%+v", r)
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; live it again with -run %s$ -v -fleet.seed=%d", r.Seed, r.First, t.Name(), r.Seed)
	}
}
