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
	simLives = 4000
	simFirst = 1 // seed 0 means none given
	simPath  = "/var/flake-timestamp"
)

// simNode is the generator and its mark as they are, but for the goroutine that
// ticks.
type simNode struct {
	m   *simulate.Machine
	d   *Durable
	ids []ID
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
	d.extend = func(uint64) (err error) {
		n.m.Undisturbed(func() { err = d.renew() })
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

// live simulates with a config, and fails with the life to live again if
// anything goes wrong.
func TestSimulate(t *testing.T) {
	if *simSeed != 0 {
		r := simulate.Run(simConfig(), *simSeed, t.Logf)
		if r.Wrong() > 0 {
			t.Errorf("seed %d: %s; in all %+v", *simSeed, r.First, r)
		}
		return
	}
	r := simulate.Many(simConfig(), simFirst, simLives**simTimes)
	t.Logf("flake: %+v", r)
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; live it again with -run TestSimulate$ -v -simulate.seed=%d", r.Seed, r.First, r.Seed)
	}
	if r.Crashes() < 10_000**simTimes || r.ClockFaults < 10_000**simTimes {
		t.Errorf("only %d crashes and %d clock faults: the lives are too easy", r.Crashes(), r.ClockFaults)
	}
	o := simulate.Many(simulate.Config{New: simulate.NewOriginal}, simFirst, simLives)
	t.Logf("the original: %+v", o)
}
