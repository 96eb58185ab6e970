package dist

import "time"

// longHeld is how long a connection must hold something for that to count twice.
const longHeld = time.Second

// share is what one connection holds of the pool.
type share struct {
	pool *pool
	end  func() // ends the connection

	held   int
	pinned int    // the part of held that outlives the connection
	ended  bool   // only what is pinned still counts
	place  int    // in pool.shares, if it holds anything
	next   *share // the one stopped before

	since time.Time // when least[0] began
	least [2]int    // the least held since then, and in the longHeld before that
}

// take takes n bytes, or reports that there is no room. Like give, it ignores n <= 0.
func (s *share) take(n int) bool {
	if n <= 0 {
		return true
	}
	p := s.pool
	p.mu.Lock()
	room := !s.ended
	var stopped *share
	for room && int(p.held.Load())+n > p.limit(s.held+n) {
		most := p.makeRoom(s, s.held+n)
		if room = most != nil; room {
			most.next, stopped = stopped, most
		}
	}
	if room {
		s.change(n)
	}
	p.mu.Unlock()
	for ; stopped != nil; stopped = stopped.next {
		stopped.end()
	}
	return room
}

func (s *share) give(n int) {
	if n <= 0 {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if !s.ended {
		s.change(-n)
	}
}

// pin makes n held bytes count until unpin, even if the connection ends before that,
// unless it has ended already.
func (s *share) pin(n int) bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.ended {
		return false
	}
	s.pinned += n
	return true
}

// unpin gives back pinned bytes.
func (s *share) unpin(n int) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pinned -= n
	s.change(-n)
}

// stop leaves only pinned bytes counted. The connection releases the rest as it ends.
func (s *share) stop() {
	s.ended = true
	s.change(s.pinned - s.held)
}

func (s *share) change(n int) {
	now := time.Now()
	if s.held == 0 {
		s.pool.add(s)
		s.since, s.least = now, [2]int{n, 0}
	}
	s.turn(now)
	s.held += n
	s.least[0] = min(s.least[0], s.held)
	s.pool.held.Add(int64(n))
	if s.held == 0 {
		s.pool.remove(s)
	}
}

// turn starts the next period of longHeld, if this one is over.
func (s *share) turn(now time.Time) {
	switch since := now.Sub(s.since); {
	case since >= 2*longHeld:
		s.since, s.least = now, [2]int{s.held, s.held}
	case since >= longHeld:
		s.since, s.least = now, [2]int{s.held, s.least[0]}
	}
}

// steady returns the least held for longHeld.
func (s *share) steady(now time.Time) int {
	s.turn(now)
	return min(s.least[0], s.least[1])
}
