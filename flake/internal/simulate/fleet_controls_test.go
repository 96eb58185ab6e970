package simulate

import (
	"context"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/workers"
)

// If nodes break one of the rules, the simulation must find ids that repeat.
func TestFleetFinds(t *testing.T) {
	for name, c := range map[string]struct {
		Fleet
		first uint64 // the seed of a fleet that is enough, or of one a little before it
	}{
		"a missing answer counts as success": {
			Fleet{Store: func(s workers.Store) workers.Store { return hopeful{s} }}, 9},
		"ids that begin at the clock": {
			Fleet{Restore: Steps, Bound: func(b durable.Bound) durable.Bound { return early{b} }}, 69},
		"ids that pass the mark": {
			Fleet{Bound: func(b durable.Bound) durable.Bound { return late{b} }}, 1},
		"a restored store that nobody reports":      {Fleet{Restore: Nothing, Store: blind}, 27},
		"a disk that is copied while its node runs": {Fleet{Copies: true}, 44},
		"a release that forgets the spent time": {
			Fleet{Far: true, Admin: func(s workers.Store) workers.Store { return forgetful{s} }}, 6},
		"a number that is returned below its ids": {
			Fleet{Stops: true, Memory: func(m workers.Memory) workers.Memory { return lower{m} }}, 9},
		"a file that another process writes unnoticed": {
			Fleet{Shared: true, Disk: func(d mark.Disk) mark.Disk { return &alone{Disk: d} }}, 170},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seeds = 500
			for seed := c.first; seed < c.first+seeds; seed++ {
				r := RunFleet(c.Fleet, seed, nil)
				t.Logf("%+v", r)
				if r.Duplicates+r.Overlaps > 0 {
					return
				}
			}
			t.Error("no ids of the same number and time were found")
		})
	}
}

// hopeful treats an error as success.
type hopeful struct{ workers.Store }

func (s hopeful) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	ok, err := s.Store.Swap(ctx, have, write)
	return ok || err != nil, nil
}

// blind hides the signs that a store was restored.
func blind(s workers.Store) workers.Store { return struct{ workers.Store }{s} }

type early struct{ durable.Bound }

func (early) After() uint64 { return 0 }

type late struct{ durable.Bound }

func (late) Milli() uint64 { return math.MaxUint64 }

// forgetful drops the spent time.
type forgetful struct{ workers.Store }

func (s forgetful) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	all, err := workers.List(ctx, some{s.Store, write}, prefix)
	if err != nil {
		return false, err
	}
	v := all[0].Value
	v.Spent = workers.Span{}
	for key := range write { // a release writes one key
		write = map[string]string{key: v.String()}
	}
	return s.Store.Swap(ctx, have, write)
}

// some is a store with some numbers.
type some struct {
	workers.Store
	data map[string]string
}

func (s some) List(_ context.Context, prefix string) (map[string]string, error) {
	all := maps.Clone(s.data)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return all, nil
}

// lower returns a time before the latest ids.
type lower struct{ workers.Memory }

func (m lower) Latest() uint64 { return m.Memory.Latest() - uint64(hold/2/time.Millisecond) }
