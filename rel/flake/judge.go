package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/idserver"
)

const (
	// clockBound is how far a clock may be off.
	clockBound = 10 * time.Second

	// sightings is how often in a row a peer that began later may be seen with our
	// place. By then it has asked us, if it asks at all: it should have stopped.
	sightings = 3
)

// begun is the order in which nodes began to hand out ids, by their own clocks: a
// time that is told by each of them, so that two never disagree which was first.
type begun struct {
	milli int64 // 0: not yet, which is later than any
	name  string
}

func (b begun) compare(other begun) int {
	if (b.milli == 0) != (other.milli == 0) {
		return cmp.Compare(other.milli, b.milli)
	}
	return cmp.Or(cmp.Compare(b.milli, other.milli), strings.Compare(b.name, other.name))
}

func (f *fleet) begun() begun { return begun{f.since.Load(), f.name} }

func (s *sight) begun() begun {
	if s.fleet.Since.IsZero() {
		return begun{0, s.peer}
	}
	return begun{s.fleet.Since.UnixMilli(), s.peer}
}

// rival returns the generator of a peer whose ids could be those of ours.
func (s *sight) rival(m *member) (name string, found bool) {
	for _, w := range s.fleet.Workers {
		if m.place != nil && m.place.overlaps(place{kind: w.Kind, first: w.First, last: w.Last}) {
			return w.Generator, true
		}
	}
	return "", false
}

func takenBy(m *member, s *sight, rival string) error {
	return fmt.Errorf("%w: generator %s of %s has %s, as generator %s here, and both would hand out the same ids; give one of them another",
		idserver.ErrWorkerTaken, rival, s.peer, m.place.who, m.name)
}

// takenAtStart returns an error for each place that a peer has, or is about to have.
func (f *fleet) takenAtStart(sights []sight) error {
	var errs []error
	for i := range sights {
		for _, m := range f.generators {
			if rival, found := sights[i].rival(m); found {
				errs = append(errs, takenBy(m, &sights[i], rival))
			}
		}
	}
	return errors.Join(errs...)
}

// judge stops what may not go on, and has go on what may again.
func (f *fleet) judge(sights []sight) {
	for _, m := range f.generators {
		if !m.taken.Load() {
			f.judgeWorker(m, sights)
		}
	}
	clock := f.clockFault(sights)
	for _, m := range f.generators {
		if m.taken.Load() {
			continue // until a start: what the other has made meanwhile is not known
		}
		was := m.halt.Why()
		m.halt.Stop(clock)
		switch {
		case clock != nil && was == nil:
			f.log.Error("no ids: the clock differs from those of peers", "generator", m.name, "err", clock)
		case clock == nil && was != nil:
			f.log.Info("ids again: the clock no longer differs from those of peers", "generator", m.name)
		}
	}
}

// judgeWorker stops a generator if a peer has its place. Of two that know of each other
// the one that began later stops; if it does not, then ours.
func (f *fleet) judgeWorker(m *member, sights []sight) {
	for i := range sights {
		s := &sights[i]
		if s.err != nil {
			continue
		}
		rival, found := s.rival(m)
		if !found || s.fleet.Since.IsZero() { // it will refuse to start
			delete(m.seen, s.peer)
			continue
		}
		m.seen[s.peer]++
		err := takenBy(m, s, rival)
		if f.begun().compare(s.begun()) < 0 && m.seen[s.peer] < sightings {
			f.log.Error("ids may come twice: a peer that began later has our worker, and has not stopped yet", "generator", m.name, "err", err)
			continue
		}
		m.taken.Store(true)
		m.halt.Stop(err)
		f.log.Error("no ids until the next start: a peer has our worker, and ids of both may be the same since the later one began", "generator", m.name, "err", err)
		return
	}
}

// clockFault returns an error if our clock is off. The one that is right is that in the
// middle of all clocks; of two in the middle, that of the node that began first. So
// one that is wrong stops nobody else, and there is always one that goes on.
func (f *fleet) clockFault(sights []sight) error {
	all := []sight{{peer: f.name}}
	order := map[string]begun{f.name: f.begun()}
	for _, s := range sights {
		if s.err == nil && !s.blind {
			all = append(all, s)
			order[s.peer] = s.begun()
		}
	}
	slices.SortFunc(all, func(a, b sight) int { return cmp.Compare(a.offset, b.offset) })
	right := all[len(all)/2]
	if other := all[(len(all)-1)/2]; order[other.peer].compare(order[right.peer]) < 0 {
		right = other
	}
	if right.offset.Abs()-right.doubt <= clockBound {
		return nil
	}
	side := "behind"
	if right.offset < 0 {
		side = "ahead of"
	}
	return fmt.Errorf("%w: the clock here is %v %s that of %s, and at most %v is allowed; set it right",
		idserver.ErrClockDiffers, right.offset.Abs().Round(time.Millisecond), side, right.peer, clockBound)
}
