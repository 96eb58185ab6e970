package generators

import (
	"fmt"
	"sort"

	"github.com/flake-go/flake/flake/formats"
)

// place is that of a generator, and whether it was chosen: by the configuration, not by the
// machine's network card.
type place struct {
	formats.Place
	chosen bool
}

// places are those of one node's generators, by name.
type places struct {
	most uint64 // the highest number of etcd
	all  map[string]planned
}

// planned is a generator that is to be opened.
type planned struct {
	place place // with a number of etcd, that of 0
	plan  planner
	etcd  bool
}

// add fails if another generator has the place of this one, or part of it, or may have.
func (ps *places) add(name string, p place, plan planner, etcd bool) error {
	g := planned{p, plan, etcd}
	for other, its := range ps.all {
		how := "has it"
		switch {
		case etcd == its.etcd && p.Overlaps(its.place.Place): // those of etcd have one number
		case etcd && !its.etcd && g.meets(its.place, ps.most):
			how = "has one of these numbers"
		case !etcd && its.etcd && its.meets(p, ps.most):
			how = "may get it from etcd"
		default:
			continue
		}
		if etcd {
			p.Value = `"etcd"`
		}
		return fmt.Errorf("%s: generator %s %s, and both would hand out the same ids; give one of them another %s",
			p, other, how, p.Key)
	}
	if ps.all == nil {
		ps.all = make(map[string]planned)
	}
	ps.all[name] = g
	return nil
}

// meets tells whether a number of etcd, up to most, gives part of a place. Those of one
// number are below those of the next.
func (g planned) meets(p place, most uint64) bool {
	of := func(number uint64) formats.Place {
		p, _ := g.plan(number)
		return p.place.Place
	}
	n := sort.Search(int(most), func(n int) bool { return of(uint64(n)).Last >= p.First })
	return of(uint64(n)).Overlaps(p.Place)
}
