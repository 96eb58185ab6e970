package flake

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/simulate"
)

var (
	simTimes = flag.Int("simulate.times", 1, "how many times the number of lives")
	simSeed  = flag.Uint64("simulate.seed", 0, "live this one life, and tell all of it")
)

const (
	simLives = 1600
	simFirst = 1 // seed 0 means none given
	simPath  = "/var/flake-timestamp"
)

// simNode is the generator and its mark as they are, but for the goroutine that
// ticks.
type simNode struct {
	m *simulate.Machine
	d *Durable
}

func newSimNode(m *simulate.Machine) simulate.Node { return &simNode{m: m} }

func (n *simNode) Start(allowable time.Duration) error {
	d, err := open(context.Background(), n.m.Disk, n.m.Sleep, simPath, 1, Options{
		AllowableDowntime: allowable,
		Clock:             n.m.Clock,
	})
	if err != nil {
		return err
	}
	d.extend = func(uint64) (err error) { // as await, which has run to do it
		began := n.m.Now()
		n.m.Undisturbed(func() { err = d.renew() })
		if err == nil && n.m.Now()-began > patience {
			err = errSlow
		}
		return err
	}
	n.d = d
	return nil
}

func (n *simNode) IDs(count int, got func(uint64, uint16)) error {
	if count < 4 {
		for range count {
			id, err := n.d.Next()
			if err != nil {
				return err
			}
			got(id.Milli(), id.Sequence())
		}
		return nil
	}
	ids := make([]ID, min(count, 1000))
	for count > 0 {
		made, err := n.d.NextN(ids[:min(count, len(ids))])
		for _, id := range ids[:made] {
			got(id.Milli(), id.Sequence())
		}
		if err != nil {
			return err
		}
		count -= made
	}
	return nil
}

func (n *simNode) BadCall() {}
func (n *simNode) Tick()    { n.d.renew() }
func (n *simNode) Stop()    { n.d.Close() }

func simConfig() simulate.Config {
	return simulate.Config{New: newSimNode, Path: simPath, Mark: mark.Parse}
}

func TestSimulate(t *testing.T) {
	if *simSeed != 0 {
		if r := simulate.Run(simConfig(), *simSeed, t.Logf); r.Wrong() > 0 {
			t.Errorf("seed %d: %s; in all %+v", *simSeed, r.First, r)
		}
		return
	}
	r := simulate.Many(simConfig(), simFirst, simLives**simTimes)
	t.Logf("%+v", r)
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; live it again with -run TestSimulate$ -v -simulate.seed=%d", r.Seed, r.First, r.Seed)
	}
	if r.Crashes() < 10_000**simTimes || r.ClockFaults < 10_000**simTimes {
		t.Errorf("only %d crashes and %d clock faults: the lives are too easy", r.Crashes(), r.ClockFaults)
	}
}

// A simulation that finds nothing proves something only if the same lives find
// what is there: these are nodes that repeat ids.
func TestSimulateFinds(t *testing.T) {
	lying := simConfig()
	lying.LyingDisk = true
	for name, c := range map[string]simulate.Config{
		"the original":                            {New: simulate.NewOriginal},
		"the original under the ceiling":          {New: simulate.NewOriginal, NoBursts: true},
		"the original, only crashes and clocks":   {New: simulate.NewOriginal, NoBursts: true, NoBadCalls: true},
		"a disk that does not do what it says":    lying,
		"a generator that trusts its memory only": {New: newForgetful},
	} {
		t.Run(name, func(t *testing.T) {
			r := simulate.Many(c, simFirst, simLives)
			t.Logf("%+v", r)
			if r.Duplicates == 0 {
				t.Error("not found to repeat an id")
			}
		})
	}
}

// newForgetful gives a node whose file is not there at any start.
func newForgetful(m *simulate.Machine) simulate.Node { return &forgetful{simNode{m: m}} }

type forgetful struct{ simNode }

func (n *forgetful) Start(allowable time.Duration) error {
	n.m.Disk.Forget(simPath)
	return n.simNode.Start(allowable)
}

func TestSimulateRepeats(t *testing.T) {
	for seed := uint64(simFirst); seed < 50; seed++ {
		a, b := simulate.Run(simConfig(), seed, nil), simulate.Run(simConfig(), seed, nil)
		if a != b {
			t.Fatalf("seed %d lived twice:\n%+v\n%+v", seed, a, b)
		}
	}
}
