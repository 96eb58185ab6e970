package idhttp

import (
	"sync"
	"time"
)

// aStep is by how much a clock is set at least, if it is set; one that is made faster or
// slower differs by less from one second to the next, as does one that is read late.
const aStep = 250 * time.Millisecond

// steps are how often the clock of the machine was set.
type steps struct {
	mu            sync.Mutex
	wall          time.Time
	passed        time.Duration
	back, forward uint64
}

// note takes what the clock shows when so much time has passed, and returns by how much
// it was set since the last note.
func (s *steps) note(wall time.Time, passed time.Duration) (by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wall.IsZero() {
		by = wall.Sub(s.wall) - (passed - s.passed)
	}
	s.wall, s.passed = wall, passed
	switch {
	case by <= -aStep:
		s.back++
	case by >= aStep:
		s.forward++
	default:
		return 0
	}
	return by
}

func (s *steps) counts() (back, forward uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back, s.forward
}

// noteClock looks whether the clock was set.
func (s *Server) noteClock(now time.Time) {
	wall := now.Round(0) // without the monotonic time
	if by := s.steps.note(wall, now.Sub(s.started)); by != 0 {
		s.Log.Info("the clock was set, or the machine slept", "by", by.Round(time.Millisecond))
	}
}
