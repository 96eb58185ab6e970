package idserver

import (
	"context"
	"slices"
	"sync"
)

// share is the most ids of a large request that are taken at once, or a quarter of a
// tick's if that is more. Then others have a chance, as else one could use up tick after
// tick. Each turn costs a switch of goroutines, which takes long on a busy machine.
const share = 1024

func (s *Server) share() int { return max(share, s.IDs.PerTick()/4) }

// MaxRuns returns how many runs n ids come in at most, unless others take ids all the
// while.
func (s *Server) MaxRuns(n int) int { return 2 + n/s.share() }

// turns are those of large requests, so that all of them together take no more than
// one processor, and one share of ids. After a share it is the turn of the
// next: who wants less has it sooner, and whatever nodes ask for, others have as many
// turns.
type turns struct {
	mu      sync.Mutex
	held    bool
	queue   int // that had the last turn
	waiting [4][]*Turn
}

// The queues are those of nodes and of others, for requests of up to MaxMany ids and beyond. The
// latter go one at a time, as a lease in shares between those of many others has a run
// for each.
const (
	ofNodes  = 0
	ofOthers = 2
	longest  = 1
)

// Turn is that of one request. Nil is that of a request which needs none.
type Turn struct {
	of    *turns
	queue int
	has   bool
	given chan struct{}
}

// NoTurn is the turn of a request for which there is no room: it fails with ErrBusy.
var NoTurn = new(Turn)

// TurnOfNode returns the turn of a node's request for n ids. End has to be called.
func (s *Server) TurnOfNode(n int) *Turn { return s.turns.turn(ofNodes, n) }

// TurnOfOther is TurnOfNode for who is no node.
func (s *Server) TurnOfOther(n int) *Turn { return s.turns.turn(ofOthers, n) }

func (s *turns) turn(queue, n int) *Turn {
	if n <= MaxInline {
		return nil
	}
	if n > MaxMany {
		queue += longest
	}
	return &Turn{of: s, queue: queue, given: make(chan struct{}, 1)}
}

// next lets others have their turn and waits for the next one. At the end of ctx it fails.
func (t *Turn) next(ctx context.Context) error {
	if t.of == nil {
		return ErrBusy
	}
	t.of.enter(t)
	select {
	case <-t.given:
		t.has = true
	case <-ctx.Done():
		t.has = !t.of.leave(t)
	}
	if err := ctx.Err(); err != nil {
		t.End()
		return err
	}
	return nil
}

// End lets others have their turn: once what was asked for is there to be sent.
func (t *Turn) End() {
	if t != nil && t.has {
		t.has = false
		t.of.pass()
	}
}

// enter puts a turn behind those that wait, one of the longest before them once it has begun.
func (s *turns) enter(t *Turn) {
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
func (s *turns) leave(t *Turn) bool {
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
