package flake

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/simulate"
	"github.com/flake-go/flake/flake/internal/tick"
)

const (
	simLives = 400
	simFirst = 1
)

// simulated returns a generator that makes ids one by one and many at a time.
func simulated(m *simulate.Machine) (simulate.Generator, error) { return simulatedOn(m.NewClock()) }

func simulatedOn(clock func() uint64) (simulate.Generator, error) {
	g, err := NewGenerator(1, Options{Clock: clock})
	if err != nil {
		return simulate.Generator{}, err
	}
	return simulate.Generator{Source: g.ids, IDs: func(count int, got simulate.Got) error {
		for count > 0 {
			run, err := Run{Count: 1}, error(nil)
			if count < 4 {
				run.First, err = g.Next(context.Background())
			} else {
				run, err = g.Reserve(context.Background(), count)
			}
			if err != nil {
				return err
			}
			if run.Count < 1 {
				panic("a run without ids")
			}
			for i := range run.Count {
				id := run.At(i)
				got(id.Milli(), uint32(id.Sequence()))
			}
			count -= run.Count
		}
		return nil
	}}, nil
}

func simConfig() simulate.Config { return simulate.Kept(simulated) }

// simSeveral configures three generators that keep their marks in one file.
func simSeveral() simulate.Config { return simulate.Kept(simulated, simulated, simulated) }

// simMonotonic configures two generators whose clocks do not follow the machine's.
func simMonotonic() simulate.Config {
	monotonic := func(m *simulate.Machine) (simulate.Generator, error) { return simulatedOn(m.NewMonotonicClock()) }
	c := simulate.Kept(monotonic, monotonic)
	c.Drifts = true
	return c
}

func TestSimulate(t *testing.T) { simulate.Check(t, simConfig(), simLives) }

// No id repeats with a clock that does not follow the machine's.
func TestSimulateMonotonic(t *testing.T) { simulate.Check(t, simMonotonic(), simLives/4) }

func TestSimulateSeveral(t *testing.T) { simulate.Check(t, simSeveral(), simLives/4) }

// A simulation that finds no fault proves something only if the same lives reveal the faults of
// faulty nodes. The nodes of this test repeat ids, or make ids that do not ascend.
func TestSimulateFinds(t *testing.T) {
	lying, lyingToSeveral := simConfig(), simSeveral()
	lying.LyingDisk, lyingToSeveral.LyingDisk = true, true
	lyingMonotonic := simMonotonic()
	lyingMonotonic.LyingDisk = true
	for name, c := range map[string]simulate.Config{
		"the original":                            {New: newOriginal},
		"the original, without bursts":            {New: newOriginal, NoBursts: true},
		"the original, only crashes and steps":    {New: newOriginal, NoBursts: true, NoBadCalls: true},
		"a disk that ignores fsync":               lying,
		"a lying disk, several generators":        lyingToSeveral,
		"a lying disk, a monotonic clock":         lyingMonotonic,
		"a file that loses one of several marks":  {New: newLosing},
		"a generator that trusts only its memory": {New: newForgetful},
	} {
		t.Run(name, func(t *testing.T) {
			finds := func(r simulate.Report) bool { return r.Duplicates+r.Disorders > 0 }
			if !simulate.Find(c, simFirst, simLives, finds) {
				t.Error("found no id that repeats or does not ascend")
			}
		})
	}
}

// newForgetful returns a node whose file is missing at each start.
func newForgetful(m *simulate.Machine) simulate.Node {
	return &forgetful{simConfig().New(m), m}
}

type forgetful struct {
	simulate.Node
	m *simulate.Machine
}

func (n *forgetful) Start(allowable time.Duration) error {
	n.m.Disk.Forget(simulate.Path)
	return n.Node.Start(allowable)
}

// newLosing returns a node with several generators whose file loses the mark of one before each
// start.
func newLosing(m *simulate.Machine) simulate.Node { return &losing{simSeveral().New(m), m} }

type losing struct {
	simulate.Node
	m *simulate.Machine
}

func (n *losing) Start(allowable time.Duration) error {
	file, content, err := mark.Open(n.m.Disk, simulate.Path)
	if err != nil {
		return err
	}
	if _, found := content.Marks[simulate.NameOf(2)]; found {
		delete(content.Marks, simulate.NameOf(2))
		err = file.Save(content)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return n.Node.Start(allowable)
}

// The simulation finds ids past the mark if a generator does not wait for its mark.
func TestSimulateFindsIDsPastTheMark(t *testing.T) {
	hasty := func(m *simulate.Machine) (simulate.Generator, error) {
		g, err := simulated(m)
		g.Source = hasty{g.Source}
		return g, err
	}
	if r := simulate.Many(simulate.Kept(simulated, hasty), simFirst, 100); r.PastMark == 0 {
		t.Errorf("%+v", r)
	}
}

type hasty struct{ durable.Source }

func (h hasty) Limit() *tick.Limit {
	l := h.Source.Limit()
	if l.Milli() > 0 { // not halted
		l.Set(l.Last())
	}
	return l
}

func TestSimulateRepeats(t *testing.T) {
	for seed := uint64(simFirst); seed < 50; seed++ {
		a, b := simulate.Run(simConfig(), seed, nil), simulate.Run(simConfig(), seed, nil)
		if a != b {
			t.Fatalf("seed %d has two results:\n%+v\n%+v", seed, a, b)
		}
	}
}

// A node that trusts any clock cannot make ids after its clock was ahead. The simulation finds
// that.
func TestSimulateFindsNoIDs(t *testing.T) {
	c := simulate.Kept(func(m *simulate.Machine) (simulate.Generator, error) { return simulatedOn(m.Clock) })
	if r := simulate.Many(c, simFirst, 100); r.Lost == 0 || r.Duplicates+r.Disorders+r.PastMark > 0 {
		t.Errorf("%+v", r)
	}
}
