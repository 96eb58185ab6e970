package setup

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sort"
	"strings"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/latency"
)

// Generator is a generator that the configuration describes.
type Generator struct {
	config.Generator
	mark   string // the name of its mark; empty for the generator flake
	from   string // the source of its worker; empty: its [[generator]] table
	chosen bool   // whether the worker is from the configuration, not from a network card

	marks *flake.Marks // keeps a random worker in the file at path; nil: a new worker each time
	path  string
	log   *slog.Logger

	ids formats.Range // set by disjoint.add; for an assigned number, those with number 0

	// Set once the generator is open:
	Server  *idserver.Server
	Who     string // a description of its worker
	saves   *latency.Histogram
	release func() error
}

// plans returns the generators of a configuration, with the one named flake first. It warns if a worker from
// a network interface may later change, or may also belong to another machine.
func plans(cfg config.Config, log *slog.Logger) (all []*Generator, err error) {
	first := &Generator{Generator: cfg.Flake.Generator, from: "worker_id", chosen: true}
	if !first.Random && !first.assigned() && len(first.Options) == 0 {
		card, err := flake.NetworkCard(cfg.Flake.Interface)
		if err != nil {
			return nil, err
		}
		if len(card.Doubts) > 0 {
			log.Warn("another machine may have this MAC, or this machine may have a different one after its next boot: "+
				`set flake.worker_id to one that no other node has, or to "random"`,
				"interface", card.Name, "worker", card.Worker, "why", "it "+strings.Join(card.Doubts, ", "))
		}
		first.Options = formats.Options{"worker_id": int64(card.Worker)}
		first.from, first.chosen = "interface "+card.Name, false
	}
	all = append(all, first)
	for _, g := range cfg.Generators {
		all = append(all, &Generator{Generator: g, mark: g.Name, chosen: true})
	}
	for _, g := range all {
		if g.path, g.log = cfg.Flake.TimestampPath, log; g.Random {
			g.from = "random, kept in " + g.path
		}
	}
	return all, nil
}

func (g *Generator) assigned() bool { return len(g.Assigned) > 0 }

// plan returns the generator's plan and a description of its worker, such as "id 5 (worker_id)".
// number is the generator's number if that is assigned. plan fails if no id can have the current
// time.
func (g *Generator) plan(number uint64) (p formats.Plan, who string, err error) {
	if g.Random && g.Options == nil {
		w, made := flake.RandomWorker(), false
		if g.marks != nil {
			if w, made, err = flake.KeptWorker(g.marks, g.mark); err != nil {
				return p, who, err
			}
		}
		if made {
			g.log.Info("chose a random worker id: it is saved with the timestamp and lasts as long as that file",
				"worker", w, "file", g.path)
		}
		g.Options = formats.Options{g.Kind().Numbers[0][0]: int64(w)}
	}
	from := g.from
	if g.assigned() && g.mark == "" {
		from = fmt.Sprintf("assigned number %d", number)
	}
	if p, err = g.Kind().Plan(g.Numbered(number)); err != nil {
		return p, who, err
	}
	who = p.Who
	if from != "" {
		who += " (" + from + ")"
	}
	_, err = p.Open(context.Background(), "", flake.Options{})
	return p, who, err
}

func (g *Generator) opener(o flake.Options) generators.Opener[formats.Generator] {
	return func(ctx context.Context, mark string, number uint64, bound flake.Bound) (formats.Generator, error) {
		p, who, err := g.plan(number)
		if err != nil {
			return nil, err
		}
		if g.Who == "" { // set only once: later, a move may run while Who is read
			g.Who = who
		}
		o := o
		o.Bound = bound
		return p.Open(ctx, mark, o)
	}
}

func (g *Generator) fault(err error) error {
	if g.mark == "" {
		return err
	}
	return fmt.Errorf("generator %s: %w", g.Name, err)
}

// disjoint holds generators whose ranges do not overlap.
type disjoint struct {
	maxNumber uint64 // the highest that the store assigns
	all       []*Generator
}

// add adds g. It returns an error if another generator makes, or might make, ids in g's range.
func (ps *disjoint) add(g *Generator) error {
	p, _, err := g.plan(0)
	if err != nil {
		return err
	}
	g.ids = p.Range
	for _, other := range ps.all {
		how := "has it"
		switch {
		case g.assigned() == other.assigned() && g.ids.Overlaps(other.ids): // assigned ones share one number
		case g.assigned() && !other.assigned() && g.mayOverlap(other.ids, ps.maxNumber):
			how = "has one of these numbers"
		case !g.assigned() && other.assigned() && other.mayOverlap(g.ids, ps.maxNumber):
			how = "may be assigned it"
		default:
			continue
		}
		shown := g.ids
		if g.assigned() {
			shown.Value = `"assigned"`
		}
		return fmt.Errorf("%s: generator %s %s, and both would hand out the same ids; give one of them another %s",
			shown, other.Name, how, shown.Key)
	}
	ps.all = append(ps.all, g)
	return nil
}

// mayOverlap reports whether p overlaps the range of g's ids with any number up to maxNumber.
func (g *Generator) mayOverlap(p formats.Range, maxNumber uint64) bool {
	n := g.search(int(maxNumber), p, func(n int) uint64 { return uint64(n) })
	return g.rangeOf(uint64(n)).Overlaps(p)
}

// search returns the first of n ascending numbers for which g's range does not end before p, or n.
func (g *Generator) search(n int, p formats.Range, number func(i int) uint64) int {
	return sort.Search(n, func(i int) bool { return g.rangeOf(number(i)).Last >= p.First }) // ranges ascend too
}

// rangeOf returns the range of g's ids with a number.
func (g *Generator) rangeOf(number uint64) formats.Range {
	p, _ := g.Kind().Plan(g.Numbered(number))
	return p.Range
}

// fits returns an error if a number set by hand is one of those in the store, other than the node's
// own. all must ascend. Nodes without a generator of that format count as if they had it, because
// other nodes may have it.
func fits(cfg config.Config, own uint64, all []workers.Entry) error {
	for _, g := range cfg.Generators {
		if !byHand(g) {
			continue
		}
		hand := &Generator{Generator: g, mark: g.Name}
		p := hand.rangeOf(0)
		var others []*Generator
		for _, other := range cfg.Generators {
			if n := (&Generator{Generator: other}); n.assigned() && n.rangeOf(0).Space == p.Space {
				others = append(others, n)
			}
		}
		if others == nil {
			others = append(others, hand.asAssigned())
		}
		for _, other := range others {
			if e, ok := other.meets(p, own, all); ok {
				return hand.fault(fmt.Errorf("%s: number %d is assigned to %s until %s, and both nodes would hand out "+
					`the same ids; set a number that was never assigned, or "assigned", and the same numbers.count on all nodes`,
					p, e.Number, e.Name, time.UnixMilli(int64(e.Mark)).UTC().Format(time.RFC3339)))
			}
		}
	}
	return nil
}

// asAssigned returns g as it would be if its number were assigned.
func (g *Generator) asAssigned() *Generator {
	twin := &Generator{Generator: g.Generator}
	twin.Options = maps.Clone(g.Options)
	for _, keys := range g.Kind().Numbers {
		for _, key := range keys {
			delete(twin.Options, key)
		}
	}
	twin.Assigned = g.Kind().Numbers[0]
	return twin
}

// meets returns an entry with which g would have a range that overlaps p.
func (g *Generator) meets(p formats.Range, own uint64, all []workers.Entry) (e workers.Entry, ok bool) {
	most := g.Kind().MaxNumber(g.Options, g.Assigned)
	all = all[:sort.Search(len(all), func(i int) bool { return all[i].Number > most })]
	for _, e := range all[g.search(len(all), p, func(i int) uint64 { return all[i].Number }):] {
		if !g.rangeOf(e.Number).Overlaps(p) {
			break
		}
		if e.Number != own {
			return e, true
		}
	}
	return e, false
}
