package simulate

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/workers"
)

// The simulation must find ids that repeat once a part of the rules is missing.
func TestFleetFinds(t *testing.T) {
	for name, f := range map[string]Fleet{
		"no answer is taken for success":            {Store: func(s workers.Store) workers.Store { return hopeful{s} }},
		"ids that begin at the clock":               {Restore: Steps, Bound: func(b durable.Bound) durable.Bound { return early{b} }},
		"ids that pass the mark":                    {Bound: func(b durable.Bound) durable.Bound { return late{b} }},
		"a restored store that nobody reports":      {Restore: Nothing, Store: blind},
		"a disk that is copied while its node runs": {Copies: true},
		"a release that forgets what was spent":     {Far: true, Admin: func(s workers.Store) workers.Store { return forgetful{s} }},
		"a number that is returned below its ids":   {Stops: true, Memory: func(m workers.Memory) workers.Memory { return lower{m} }},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 40
			for i := range uint64(most) {
				r := ManyFleets(f, 1+i*uint64(*fleetLives), *fleetLives)
				t.Logf("%+v", r)
				if r.Duplicates+r.Overlaps > 0 {
					return
				}
			}
			t.Error("no ids of the same number and time were found")
		})
	}
}

// hopeful takes an error for success.
type hopeful struct{ workers.Store }

func (s hopeful) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	ok, err := s.Store.Swap(ctx, have, key, value)
	return ok || err != nil, nil
}

// blind is a store without signs of a restore.
func blind(s workers.Store) workers.Store { return struct{ workers.Store }{s} }

type early struct{ durable.Bound }

func (early) After() uint64 { return 0 }

type late struct{ durable.Bound }

func (late) Milli() uint64 { return math.MaxUint64 }

// forgetful drops the spent time.
type forgetful struct{ workers.Store }

func (s forgetful) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	all, err := workers.List(ctx, one{s.Store, key, value}, prefix)
	if err != nil {
		return false, err
	}
	v := all[0].Value
	v.Spent = workers.Span{}
	return s.Store.Swap(ctx, have, key, v.String())
}

// one is a store with one value and no floor.
type one struct {
	workers.Store
	key, value string
}

func (s one) List(context.Context, string) (map[string]string, error) {
	return map[string]string{s.key: s.value}, nil
}

// lower does not know the latest ids.
type lower struct{ workers.Memory }

func (m lower) Latest() uint64 { return m.Memory.Latest() - uint64(hold/2/time.Millisecond) }
