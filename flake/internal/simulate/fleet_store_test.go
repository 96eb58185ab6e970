package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/workers"
)

const prefix = "/flake"

// store is a model of etcd with snapshots.
type store struct {
	f         *fleet
	data      map[string]string
	revision  int // the revision of the last write
	snapshots []snapshot
	epoch     int // the number of times that the store was restored
	down      bool
	restored  time.Duration     // when (true time) it was last restored
	floor     uint64            // the highest mark of a floor, which the operator remembers
	marks     map[uint64]uint64 // the highest mark ever written, by number
	claims    map[uint64]uint64 // the generation last written, by number
}

type snapshot struct {
	data     map[string]string
	revision int
}

func newStore(f *fleet) *store {
	return &store{f: f, data: map[string]string{}, marks: map[uint64]uint64{}, claims: map[uint64]uint64{}}
}

func (s *store) snapshot() {
	s.snapshots = append(s.snapshots, snapshot{maps.Clone(s.data), s.revision})
}

// restore restores the store to a random snapshot. With [Steps], an operator then writes a floor.
func (s *store) restore() {
	if len(s.snapshots) == 0 || s.f.Often && s.f.Restore == Steps && s.f.now < s.restored+hold*3/2 {
		return
	}
	s.restored = s.f.now
	i := s.f.rng.IntN(len(s.snapshots))
	s.data, s.revision = maps.Clone(s.snapshots[i].data), s.snapshots[i].revision
	s.epoch++
	s.f.report.Restores++
	s.f.trace("the store is restored to snapshot %d", i)
	if s.f.Restore == Steps {
		s.afterRestore(true)
	}
}

// remove deletes the key of a number.
func (s *store) remove(number uint64) {
	key := fmt.Sprintf("%s/n/%012x", prefix, number)
	if _, found := s.data[key]; found {
		s.f.report.Removed++
	}
	delete(s.data, key)
	s.f.trace("the key of %d is deleted", number)
}

// afterRestore runs AfterRestore as an operator would. The store may have forgotten the floor of
// a recent restore; then the margin must reach beyond that floor.
func (s *store) afterRestore(restored bool) {
	r := workers.Restored{
		Clock: func() uint64 { return uint64(s.f.now / time.Millisecond) },
		Hold:  hold, Margin: s.f.ahead + time.Second, Again: restored, Sure: true, Nonce: s.f.rng.Uint64(),
	}
	if now := r.Clock(); restored && s.floor > now {
		r.Margin = max(r.Margin, time.Duration(s.floor-now+1)*time.Millisecond)
	}
	floor, err := workers.AfterRestore(context.Background(), s, prefix, r)
	s.floor = max(s.floor, floor.Mark)
	s.f.trace("floor %v, %v", floor, err)
}

// List implements [workers.Store], as do the other methods. The store itself answers
// immediately.
func (s *store) List(_ context.Context, prefix string) (map[string]string, error) {
	all := maps.Clone(s.data)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return all, nil
}

func (s *store) Get(_ context.Context, keys ...string) (texts []string, err error) {
	for _, key := range keys {
		texts = append(texts, s.data[key])
	}
	return texts, nil
}

func (s *store) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	for k, v := range have {
		if s.data[k] != v {
			return false, nil
		}
	}
	maps.Copy(s.data, write)
	s.revision++
	s.f.trace("the store has %v", write)
	entries, err := workers.List(ctx, s, prefix)
	for _, e := range entries {
		if e.Spent.Mark > 0 && !e.Free && e.Generation > s.claims[e.Number] {
			s.f.report.Below++
		}
		s.claims[e.Number] = e.Generation
		s.marks[e.Number] = max(s.marks[e.Number], e.Mark)
	}
	return true, err
}

// client is the store as a node sees it.
type client struct{ *fleetNode }

func (c client) List(ctx context.Context, prefix string) (all map[string]string, err error) {
	err = c.ask(false, func() { all, _ = c.fleet.store.List(ctx, prefix) })
	return all, err
}

func (c client) Get(ctx context.Context, keys ...string) (texts []string, err error) {
	err = c.ask(false, func() { texts, _ = c.fleet.store.Get(ctx, keys...) })
	return texts, err
}

func (c client) Swap(ctx context.Context, have, write map[string]string) (ok bool, err error) {
	err = c.ask(true, func() { ok, _ = c.fleet.store.Swap(ctx, have, write) })
	return ok, err
}

// Restored implements [workers.Restorable] as package etcd does.
func (c client) Restored() (string, bool) {
	sign := c.sign
	if sign {
		c.fleetNode.sign, c.fleetNode.seen = false, 0
	}
	return "the revision is lower", sign
}

var (
	errNoAnswer = errors.New("no answer")
	errRestored = errors.New("the store was restored")
)

// ask sends the store a request, which do executes. The request or its answer may be lost; if
// late is set, the request may also be delayed.
func (m *fleetNode) ask(late bool, do func()) error {
	if m.sign {
		return errRestored
	}
	f, t, seen := m.fleet, m.task, m.seen
	t.wait(f.span(100 * time.Millisecond))
	silent := func() error {
		f.report.Unanswered++
		t.wait(timeout)
		return errNoAnswer
	}
	chance := 100
	if !f.calm {
		chance = f.rng.IntN(100)
	}
	switch {
	case m.cut || f.store.down, chance < 3:
		return silent()
	case chance < 6 && late:
		f.report.Late++
		epoch := f.store.epoch
		f.spawn(nil, func(other *task) {
			other.wait(f.span(2 * hold))
			if f.store.epoch == epoch { // a restore closes connections
				do()
			}
		})
		return silent()
	}
	do()
	if chance < 12 || m.cut {
		return silent()
	}
	revision := f.store.revision
	t.wait(f.span(100 * time.Millisecond))
	if revision < seen {
		m.sign = true
		return errRestored
	}
	m.seen = max(m.seen, revision)
	return nil
}
