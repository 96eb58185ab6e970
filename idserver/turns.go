package idserver

import (
	"context"
	"slices"
	"sync"
)

// share is the number of ids that a large request takes in one turn, unless a quarter of a tick's
// ids is more. It keeps one request from using up tick after tick. Smaller turns would be slow:
// each costs a switch of goroutines, which takes a long time on a busy machine.
const share = 1024

func (s *Server) share() int { return max(share, s.IDs.PerTick()/4) }

// MaxRuns returns the maximum number of runs for n ids, unless other requests keep taking ids.
func (s *Server) MaxRuns(n int) int { return 2 + n/s.share() }

// turns makes large requests take turns, with a share of ids in each turn, so that together they
// use at most one processor. The queues take turns too. So smaller requests finish first, and
// nodes, however many there are, get no more turns than other callers.
type turns struct {
	mu      sync.Mutex // guards the fields below
	holder  *Turn      // the request whose turn it is, or nil
	last    int        // the queue that had the last turn
	waiting [4][]*Turn
}

// Nodes have one queue for requests for up to MaxMany ids, and one for longer requests. Other
// callers have two such queues too. Long requests finish one at a time: if they alternated, a
// lease would consist of one run per share.
const (
	ofNodes  = 0
	ofOthers = 2
	long     = 1
)

// Turn is the position of a request for more than MaxInline ids in its queue.
type Turn struct {
	turns   *turns
	queue   int
	ready   chan struct{} // receives when the turn comes
	refused bool
}

// TurnOfNode returns the turn of a node's request for n ids, or nil if the request needs none. The
// caller must call End.
func (s *Server) TurnOfNode(n int) *Turn { return s.turns.turn(ofNodes, n) }

// TurnOfOther is like TurnOfNode, for callers that are not nodes.
func (s *Server) TurnOfOther(n int) *Turn { return s.turns.turn(ofOthers, n) }

func (s *turns) turn(queue, n int) *Turn {
	if n <= MaxInline {
		return nil
	}
	if n > MaxMany {
		queue += long
	}
	return &Turn{turns: s, queue: queue, ready: make(chan struct{}, 1)}
}

// Refuse makes the request fail with ErrBusy, because there is no room for its reply. It does nothing
// if t is nil: small requests are never refused.
func (t *Turn) Refuse() {
	if t != nil {
		t.refused = true
	}
}

// next ends the turn that t holds, if any, and waits for t's next turn. It fails if ctx ends or t is
// refused. After an error, only End may be called.
func (t *Turn) next(ctx context.Context) error {
	if t.refused {
		return ErrBusy
	}
	t.turns.enter(t)
	select {
	case <-t.ready:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// End passes the turn on, or stops waiting for it. Call it when the reply is ready to be sent.
func (t *Turn) End() {
	if t == nil {
		return
	}
	s := t.turns
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == t {
		s.pass()
	} else if i := slices.Index(s.waiting[t.queue], t); i >= 0 {
		s.waiting[t.queue] = slices.Delete(s.waiting[t.queue], i, i+1)
	}
}

// enter adds t to the end of its queue, or to the front if t is a long request that has started.
func (s *turns) enter(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.waiting[t.queue]
	at := len(*w)
	if s.holder == t && t.queue&long != 0 {
		at = 0
	}
	*w = slices.Insert(*w, at, t)
	if s.holder == nil || s.holder == t {
		s.pass()
	}
}

// pass passes the turn to the first request of the next queue that is not empty. s.mu must be held.
func (s *turns) pass() {
	s.holder = nil
	for range s.waiting {
		s.last = (s.last + 1) % len(s.waiting)
		if w := &s.waiting[s.last]; len(*w) > 0 {
			s.holder = (*w)[0]
			s.holder.ready <- struct{}{}
			*w = slices.Delete(*w, 0, 1)
			return
		}
	}
}
