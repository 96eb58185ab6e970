package flakeserver

import (
	"context"
	"slices"
	"sync"
)

// share is the most ids of a large request that are taken at once. Then others
// have a chance, as else one could use up tick after tick.
const share = 1024

// turns are those of large requests, so that all of them together take no more than
// one processor, and one share of a tick's ids. After a share it is the turn of the
// next: who wants less has it sooner, and whatever is asked at one door, the other has
// as many turns.
type turns struct {
	mu      sync.Mutex
	held    bool
	queue   int // that had the last turn
	waiting [4][]*turn
}

// The queues are those of either door, for requests of up to MaxMany ids and beyond. The
// latter go one at a time, as a lease in shares between those of many others has a run
// for each.
const (
	ofNodes  = 0
	ofOthers = 2
	longest  = 1
)

// turn is that of one request.
type turn struct {
	of    *turns
	queue int
	has   bool
	given chan struct{}
}

// turn gives that of a request for n ids, at the door of ofNodes or ofOthers.
func (s *turns) turn(door, n int) *turn {
	if n > MaxMany {
		door += longest
	}
	return &turn{of: s, queue: door, given: make(chan struct{}, 1)}
}

// next lets others have their turn and waits for the next one. At the end of ctx it fails.
func (t *turn) next(ctx context.Context) error {
	t.of.enter(t)
	select {
	case <-t.given:
		t.has = true
	case <-ctx.Done():
		t.has = !t.of.leave(t)
	}
	if err := ctx.Err(); err != nil {
		t.end()
		return err
	}
	return nil
}

// end lets others have their turn.
func (t *turn) end() {
	if t.has {
		t.has = false
		t.of.pass()
	}
}

// enter puts a turn behind those that wait, one of the longest before them once it has begun.
func (s *turns) enter(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.waiting[t.queue]
	place := len(*w)
	if t.has && t.queue&longest != 0 {
		place = 0
	}
	*w = slices.Insert(*w, place, t)
	if t.has || !s.held {
		t.has = false
		s.give()
	}
}

// leave reports whether the turn was still waited for.
func (s *turns) leave(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.waiting[t.queue]
	i := slices.Index(*w, t)
	if i >= 0 {
		*w = slices.Delete(*w, i, i+1)
	}
	return i >= 0
}

func (s *turns) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give()
}

// give gives the turn to the first of the next queue, if anybody waits.
func (s *turns) give() {
	s.held = false
	for range s.waiting {
		s.queue = (s.queue + 1) % len(s.waiting)
		if w := &s.waiting[s.queue]; len(*w) > 0 {
			(*w)[0].given <- struct{}{}
			*w = slices.Delete(*w, 0, 1)
			s.held = true
			return
		}
	}
}
