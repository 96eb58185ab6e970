package simulate

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/workers"
)

const prefix = "/flake"

// store is a model of etcd: what it has, and what it had when snapshots were taken.
type store struct {
	f         *fleet
	data      map[string]string
	revision  int // of the last write
	snapshots []snapshot
	epoch     int // restores so far
	down      bool
	restored  time.Duration     // when (true time) it last was
	floor     uint64            // the last one's mark, as whoever restores remembers
	marks     map[uint64]uint64 // the highest that there ever were, by number
	claims    map[uint64]uint64 // how many there were, by number
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

// restore puts the store back to some snapshot, and does what is asked for then.
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

// afterRestore is what an operator does. One who knows of a restore not long ago, which the
// store may have forgotten, has the margin reach beyond the floor of that.
func (s *store) afterRestore(restored bool) {
	r := workers.Restored{Clock: func() uint64 { return uint64(s.f.now / time.Millisecond) }, Hold: hold, Margin: s.f.ahead + time.Second, Again: restored, Sure: true, Nonce: s.f.rng.Uint64()}
	if now := r.Clock(); restored && s.floor > now {
		r.Margin = max(r.Margin, time.Duration(s.floor-now+1)*time.Millisecond)
	}
	floor, err := workers.AfterRestore(context.Background(), admin{s}, prefix, r)
	s.floor = max(s.floor, floor.Mark)
	s.f.trace("floor %v, %v", floor, err)
}

func (s *store) list(prefix string) map[string]string {
	all := map[string]string{}
	for key, text := range s.data {
		if strings.HasPrefix(key, prefix) {
			all[key] = text
		}
	}
	return all
}

func (s *store) swap(have map[string]string, key, text string) bool {
	for k, v := range have {
		if s.data[k] != v {
			return false
		}
	}
	s.data[key] = text
	s.revision++
	s.f.trace("the store has %s: %s", key, text)
	for _, e := range must(workers.List(context.Background(), admin{s}, prefix)) {
		if e.Spent.Mark > 0 && !e.Free && e.Generation > s.claims[e.Number] {
			s.f.report.Below++
		}
		s.claims[e.Number] = e.Generation
		s.marks[e.Number] = max(s.marks[e.Number], e.Mark)
	}
	return true
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// admin is a [workers.Store] that answers at once.
type admin struct{ *store }

func (a admin) List(_ context.Context, prefix string) (map[string]string, error) {
	return a.list(prefix), nil
}

func (a admin) Get(_ context.Context, keys ...string) (texts []string, err error) {
	for _, key := range keys {
		texts = append(texts, a.data[key])
	}
	return texts, nil
}

func (a admin) Swap(_ context.Context, have map[string]string, key, value string) (bool, error) {
	return a.swap(have, key, value), nil
}

// client is a [workers.Store] as a member sees it.
type client struct{ *Member }

func (c client) List(_ context.Context, prefix string) (all map[string]string, err error) {
	err = c.ask(false, func() { all = c.fleet.store.list(prefix) })
	return all, err
}

func (c client) Get(_ context.Context, keys ...string) (texts []string, err error) {
	err = c.ask(false, func() { texts, _ = admin{c.fleet.store}.Get(context.Background(), keys...) })
	return texts, err
}

func (c client) Swap(_ context.Context, have map[string]string, key, value string) (ok bool, err error) {
	err = c.ask(true, func() { ok = c.fleet.store.swap(have, key, value) })
	return ok, err
}

// Restored implements [workers.Restorable] as package etcd does.
func (c client) Restored() (string, bool) {
	sign := c.sign
	if sign {
		c.Member.sign, c.Member.seen = false, 0
	}
	return "the revision is lower", sign
}

var (
	errNoAnswer = errors.New("no answer")
	errRestored = errors.New("the store was restored")
)

// ask has the store do something: perhaps it does not hear of it, does it late, or does
// it and the answer is lost.
func (m *Member) ask(late bool, do func()) error {
	if m.sign {
		return errRestored
	}
	f, t, seen := m.fleet, m.task, m.seen
	t.wait(f.span(100 * time.Millisecond))
	silent := func() error {
		f.report.Unanswered++
		t.wait(answer)
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
			if f.store.epoch == epoch { // its connection ended with the store
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
