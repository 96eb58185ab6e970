package sno

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/simulate"
)

const simLives = 100

// simulation makes ids one by one and many at a time, and waits for a clock that is less than a
// second behind.
//
// There are too few lives for two ids to have the same tick by chance. So simulation also counts
// the ids that are not later than all earlier ones with the same tick-tock bit.
type simulation struct {
	kept      func(*passes) durable.Source // the source for package durable
	processes sync.Map                     // the processes of each machine, a *[]*made
	back      atomic.Int64                 // number of ids that were not later
}

// made has the first and the last id of a process, by tick-tock bit.
type made struct{ first, last [2]ID }

// got counts id if it is not later than the last of its process or, if it is the first, than those of
// all processes. If a second process runs at the same time, the first may still make ids up to its
// mark, but none as late as the second's first.
func (s *simulation) got(m *simulate.Machine, p *made, id ID) {
	list, _ := s.processes.LoadOrStore(m, new([]*made))
	all := list.(*[]*made)
	if !slices.Contains(*all, p) {
		*all = append(*all, p)
	}
	bit := id[4] & 1
	starts := p.first[bit] == ID{}
	if starts {
		p.first[bit] = id
	}
	back := id.Compare(p.last[bit]) <= 0
	later := false // whether the other process began after p
	for _, other := range *all {
		switch {
		case other == p:
			later = true
		case starts:
			back = back || id.Compare(other.last[bit]) <= 0
		case later && other.first[bit] != ID{}:
			back = back || id.Compare(other.first[bit]) >= 0
		}
	}
	if back {
		s.back.Add(1)
	}
	p.last[bit] = id
}

func (s *simulation) generator(m *simulate.Machine) (simulate.Generator, error) {
	g, err := NewGenerator(&Snapshot{SequenceMin: 30_000}, Options{Clock: m.NewClock()})
	if err != nil {
		return simulate.Generator{}, err
	}
	process := new(made)
	g.marker.Sleep, g.passes.sleep, g.passes.pass().ids.Sleep = m.Sleep, m.Sleep, m.Sleep
	return simulate.Generator{Source: s.kept(g.passes), IDs: func(count int, got simulate.Got) error {
		for count > 0 {
			run, err := g.Reserve(context.Background(), count)
			if errors.Is(err, flake.ErrClockBackwards) && g.passes.now.Load().lag() < 1000 {
				if err = g.CatchUp(context.Background()); err == nil {
					run, err = g.Reserve(context.Background(), count)
				}
			}
			if err != nil {
				return err
			}
			if run.Count < 1 {
				panic("a run without ids")
			}
			for i := range run.Count {
				id := run.At(i)
				s.got(m, process, id)
				got(id.Milli(), uint32(id[4]&1)<<16|uint32(id.Sequence()))
			}
			count -= run.Count
		}
		return nil
	}}, nil
}

func config(simulations ...*simulation) simulate.Config {
	var generators []func(*simulate.Machine) (simulate.Generator, error)
	for _, s := range simulations {
		generators = append(generators, s.generator)
	}
	c := simulate.Kept(generators...)
	c.Unit, c.Unordered = unit, true
	return c
}

// counted counts the starts that flip the tick-tock bit, and the saves after at least one flip.
type counted struct {
	*passes
	turns, saves *atomic.Int64
}

func (c counted) Rewind(last uint64) uint64 {
	c.turns.Add(1)
	return c.passes.Rewind(last)
}

func (c counted) Words() []uint64 {
	words := c.passes.Words()
	if words[wordDrifts] > 0 {
		c.saves.Add(1)
	}
	return words
}

func TestSimulate(t *testing.T) { testSimulate(t, &simulation{}) }

// Two generators keep their marks in one file.
func TestSimulateSeveral(t *testing.T) { testSimulate(t, &simulation{}, &simulation{}) }

func testSimulate(t *testing.T, simulations ...*simulation) {
	var turns, saves atomic.Int64
	for _, s := range simulations {
		s.kept = func(s *passes) durable.Source { return counted{s, &turns, &saves} }
	}
	c := config(simulations...)
	r := simulate.Check(t, c, simLives)
	t.Logf("%d turns at a start, %d saves with a drift", turns.Load(), saves.Load())
	for _, s := range simulations {
		if n := s.back.Load(); n > 0 {
			t.Errorf("%d ids are not later than earlier ones with the same bit", n)
		}
	}
	if n := int64(r.Nodes / 8); turns.Load() < n || saves.Load() < 10*n {
		t.Error("the simulation has too few turns, or too few saves with a drift")
	}
}

// The same lives find the faults of generators that do not save what they must.
func TestSimulateFinds(t *testing.T) {
	for name, kept := range map[string]func(*passes) durable.Source{
		"forgets its drifts":             func(s *passes) durable.Source { return forgetful{s, wordDrifts, 0} },
		"forgets the safe time":          func(s *passes) durable.Source { return forgetful{s, wordSafe, Epoch} },
		"flips the bit before saving it": func(s *passes) durable.Source { return &hasty{passes: s} },
	} {
		t.Run(name, func(t *testing.T) {
			s := simulation{kept: kept}
			goesBack := func(simulate.Report) bool { return s.back.Load() > 0 }
			if !simulate.Find(config(&s), 1, 2*simLives, goesBack) {
				t.Error("found no fault: every id is later than the earlier ones with the same bit")
			}
		})
	}
}

type forgetful struct {
	*passes
	word int
	to   uint64
}

func (f forgetful) Words() []uint64 {
	words := f.passes.Words()
	words[f.word] = f.to
	return words
}

// hasty's first save in each pass writes the words of the previous pass.
type hasty struct {
	*passes
	before, now []uint64
}

func (h *hasty) Words() []uint64 {
	words := h.passes.Words()
	if h.now == nil {
		h.before, h.now = words, words
	}
	if words[wordDrifts] != h.now[wordDrifts] {
		h.before, h.now = h.now, words
		return h.before
	}
	return words
}
