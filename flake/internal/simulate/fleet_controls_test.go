package simulate

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

// Fleets in which nothing comes twice prove something only if the same lives find what
// is there: what others do, and this without one of its parts.
func TestFleetFinds(t *testing.T) {
	for name, f := range map[string]Fleet{
		"a lease, its loss noticed by keepalive":     {Keep: func(m *Member) Keeper { return &lease{m: m} }},
		"a lease with a deadline of its own":         {Keep: func(m *Member) Keeper { return &lease{m: m, deadline: true} }},
		"a fence that compares revisions":            {Restore: Steps, Often: true, Store: func(s workers.Store) workers.Store { return &byRevision{Store: s} }},
		"no answer taken for yes":                    {Store: func(s workers.Store) workers.Store { return hopeful{s} }},
		"ids that begin at the clock":                {Restore: Steps, Bound: func(b durable.Bound) durable.Bound { return early{b} }},
		"ids that pass the mark":                     {Bound: func(b durable.Bound) durable.Bound { return late{b} }},
		"a restored store that nobody told of":       {Restore: Nothing},
		"a disk that was copied while its node runs": {Copies: true},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 10
			for i := range uint64(most) {
				r := ManyFleets(f, 1+i*uint64(*fleetLives), *fleetLives)
				t.Logf("%+v", r)
				if r.Duplicates+r.Overlaps > 0 {
					return
				}
			}
			t.Error("not found to make ids of one number at one time")
		})
	}
}

// lease is a number that goes by itself, unless it is kept alive.
type lease struct {
	m        *Member
	deadline bool
	now      *leased
}

const ttl = hold

// leased is the bound of a lease that was had: its ids begin at once.
type leased struct {
	number uint64
	milli  uint64
	token  string
}

func (l *leased) After(bool) uint64                    { return 0 }
func (l *leased) Milli() uint64                        { return l.milli }
func (l *leased) Extend(context.Context, uint64) error { return tick.ErrTimestampNotSaved }

func (l *lease) Step() error {
	if l.now != nil {
		return l.alive(l.now)
	}
	for n := uint64(1); n <= numbers; n++ {
		one := &leased{number: n, token: fmt.Sprint(l.m.fleet.rng.Uint64())}
		if err := l.alive(one); err == nil {
			l.now = one
			return nil
		}
	}
	return workers.ErrNoneFree
}

func (l *lease) alive(one *leased) error {
	s, won := l.m.fleet.store, false
	asked := l.m.machine.milli()
	err := l.m.ask(true, func() {
		key := fmt.Sprint("/lease/", one.number)
		if v := s.get(key); v.text == "" || v.text == one.token {
			s.put(key, one.token, ttl)
			won = true
		}
	})
	switch {
	case err != nil: // it is asked again
		return err
	case !won:
		one.milli, l.now = 0, nil
		return workers.ErrNoneFree
	case l.deadline:
		one.milli = asked + uint64(ttl/time.Millisecond)
	default:
		one.milli = math.MaxUint64
	}
	return nil
}

func (l *lease) Now() (durable.Bound, uint64) {
	if l.now == nil {
		return nil, 0
	}
	return l.now, l.now.number
}

func (l *lease) Stop(uint64) {}

// byRevision compares when a key was written last, not what it has.
type byRevision struct {
	workers.Store
	known map[string]int // of what was read or written
}

func (s *byRevision) note(texts ...string) {
	if s.known == nil {
		s.known = map[string]int{}
	}
	for _, text := range texts {
		for _, v := range s.store().data {
			if v.text == text {
				s.known[text] = v.revision
			}
		}
	}
}

func (s *byRevision) store() *store { return s.Store.(client).fleet.store }

func (s *byRevision) List(ctx context.Context, prefix string) (map[string]string, error) {
	all, err := s.Store.List(ctx, prefix)
	for _, text := range all {
		s.note(text)
	}
	return all, err
}

func (s *byRevision) Get(ctx context.Context, keys ...string) ([]string, error) {
	texts, err := s.Store.Get(ctx, keys...)
	s.note(texts...)
	return texts, err
}

func (s *byRevision) Swap(_ context.Context, have map[string]string, key, value string) (ok bool, err error) {
	err = s.Store.(client).ask(true, func() {
		now := map[string]string{}
		for k, text := range have {
			v := s.store().data[k]
			if v.revision != s.known[text] {
				return
			}
			now[k] = v.text
		}
		ok = s.store().swap(now, key, value)
		s.note(value)
	})
	return ok, err
}

// hopeful takes no answer for yes.
type hopeful struct{ workers.Store }

func (s hopeful) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	ok, err := s.Store.Swap(ctx, have, key, value)
	return ok || err != nil, nil
}

type early struct{ durable.Bound }

func (early) After(bool) uint64 { return 0 }

type late struct{ durable.Bound }

func (late) Milli() uint64 { return math.MaxUint64 }
