package snowflake

import (
	"context"
	"testing"

	"github.com/flake-go/flake/flake/internal/simulate"
)

// simulated configures generators of machine 0, whose ids differ in millisecond or sequence.
func simulated(l Layout, o Options) simulate.Config {
	c := simulate.Kept(func(m *simulate.Machine) (simulate.Generator, error) {
		o := o
		o.Clock = m.NewClock()
		g, err := l.NewGenerator(0, o)
		if err != nil {
			return simulate.Generator{}, err
		}
		return simulate.Generator{Source: g.ids, IDs: func(count int, got simulate.Got) error {
			for count > 0 {
				run, err := g.Reserve(context.Background(), count)
				if err != nil {
					return err
				}
				if run.Count < 1 {
					panic("a run without ids")
				}
				for i := range run.Count {
					p := partsOf(l, run.At(i))
					got(p.Milli, uint32(p.Sequence))
				}
				count -= run.Count
			}
			return nil
		}}, nil
	})
	c.Unordered = o.RandomStart
	c.PerTick = 1 << min(l.Sequence, 16) // more would take too long
	if o.SequenceMask != 0 {
		c.PerTick = o.SequenceMask + 1 // in these tests, masks are all ones
	}
	return c
}

func TestSimulate(t *testing.T) {
	for name, c := range map[string]simulate.Config{
		"Twitter":                     simulated(Twitter, Options{}),
		"Twitter from a random start": simulated(Twitter, Options{RandomStart: true}),
		"Idgen with a mask":           simulated(Idgen, Options{SequenceMask: 0xff}),
		"a recent epoch, split": simulated(Layout{Time: 42, Datacenter: 3, Worker: 3, Sequence: 16,
			Epoch: 1_699_000_000_000}, Options{}),
		"few bits":                  simulated(Layout{Time: 41, Worker: 4, Sequence: 8}, Options{}),
		"all bits for the sequence": simulated(Layout{Time: 41, Sequence: 22}, Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			simulate.Check(t, c, 50)
		})
	}
	lying := simulated(Twitter, Options{})
	lying.LyingDisk = true
	if r := simulate.Many(lying, 1, 100); r.Duplicates+r.Disorders == 0 {
		t.Errorf("no fault is found on a disk that ignores fsync: %+v", r)
	}
}
