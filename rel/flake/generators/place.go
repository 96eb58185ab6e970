package generators

import (
	"fmt"
	"sort"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// place distinguishes a generator's ids from others of their kind: the bits besides
// the time, from first to last. Ids of two kinds are never compared.
type place struct {
	key, value  string // for people, as in the configuration
	kind        string
	first, last uint64
	chosen      bool // by the configuration, not by the machine's network card
}

func (p place) String() string { return p.key + " " + p.value }

func (p place) overlaps(other place) bool {
	return p.kind == other.kind && p.first <= other.last && other.first <= p.last
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
		case etcd == its.etcd && p.overlaps(its.place): // those of etcd have one number
		case etcd && !its.etcd && g.meets(its.place, ps.most):
			how = "has one of these numbers"
		case !etcd && its.etcd && its.meets(p, ps.most):
			how = "may get it from etcd"
		default:
			continue
		}
		if etcd {
			p.value = `"etcd"`
		}
		return fmt.Errorf("%s: generator %s %s, and both would hand out the same ids; give one of them another %s",
			p, other, how, p.key)
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
	of := func(number uint64) place {
		_, where, _, _ := g.plan(number)
		return where
	}
	n := sort.Search(int(most), func(n int) bool { return of(uint64(n)).last >= p.first })
	return of(uint64(n)).overlaps(p)
}

// workerPlace is of a format whose ids have a worker id.
func workerPlace(format string, w flake.Worker, chosen bool) place {
	return place{"worker_id", w.String(), format, uint64(w), uint64(w), chosen}
}

func flakePlace(w flake.Worker, chosen bool) place {
	return workerPlace(config.FormatFlake, w, chosen)
}

// snowflakePlace puts ids of flake-idgen and snowflake in one kind if they share an
// epoch and have as many bits below the time, however they split those.
func snowflakePlace(l snowflake.Layout, machine snowflake.Machine) place {
	first := uint64(machine) << l.Sequence
	kind := fmt.Sprintf("snowflake since %d", l.Epoch)
	if low := l.Datacenter + l.Worker + l.Sequence; low != 22 {
		kind = fmt.Sprintf("%s above %d bits", kind, low)
	}
	return place{
		"id", fmt.Sprintf("%d of %d bits with epoch %d ms", machine, l.Datacenter+l.Worker, l.Epoch),
		kind, first, first | (1<<l.Sequence - 1), true,
	}
}

func snoPlace(s *sno.Snapshot) place {
	first := uint64(s.Partition.AsUint16()) << 16
	return place{
		"partition", fmt.Sprintf("%d of format sno with sequence numbers %d to %d", s.Partition.AsUint16(), s.SequenceMin, s.SequenceMax),
		"sno", first | uint64(s.SequenceMin), first | uint64(s.SequenceMax), true,
	}
}
