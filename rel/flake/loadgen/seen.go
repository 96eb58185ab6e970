package loadgen

import (
	"slices"

	"github.com/flake-go/flake/flake/formats"
)

// A span is consecutive ids, from first to last.
type span struct{ first, last formats.Number }

func (s span) count() uint64 { return s.last.Lo - s.first.Lo + 1 }

// What seen keeps, 32 bytes a span, and three times that for a moment.
const (
	maxSpans = 2 << 20 // that are in order; once there are more, no more ids are compared
	maxFresh = 1 << 18 // that wait to be put in order
)

// seen finds ids that repeat. Consecutive ids are one span, in whatever order they came,
// so ids from a node with no other callers take one span per tick.
type seen struct {
	spans []span // ascending, none beside another
	fresh []span // not in spans yet
	most  int    // spans
	full  bool

	compared uint64
	twice    uint64         // how many of them repeated an earlier one
	example  formats.Number // the last of these
}

// add takes ids, unless there is no room.
func (s *seen) add(ids []span) {
	if s.full {
		return
	}
	s.fresh = append(s.fresh, ids...)
	if len(s.fresh) >= maxFresh {
		s.settle()
	}
}

// settle merges fresh into spans in order, and joins consecutive spans.
func (s *seen) settle() {
	slices.SortFunc(s.fresh, func(a, b span) int { return a.first.Compare(b.first) })
	merged := make([]span, 0, len(s.spans)+len(s.fresh))
	old, fresh := s.spans, s.fresh
	for len(old)+len(fresh) > 0 {
		var next span
		if len(fresh) == 0 || len(old) > 0 && old[0].first.Compare(fresh[0].first) <= 0 {
			next, old = old[0], old[1:]
		} else {
			next, fresh = fresh[0], fresh[1:]
			s.compared += next.count()
		}
		merged = s.join(merged, next)
	}
	s.spans, s.fresh = merged, s.fresh[:0]
	s.full = len(s.spans) > s.most
}

// join appends a span that begins where the last one does, or later.
func (s *seen) join(spans []span, next span) []span {
	if len(spans) == 0 {
		return append(spans, next)
	}
	last := &spans[len(spans)-1]
	if next.first.Compare(last.last) > 0 {
		if next.first != last.last.Plus(1) {
			return append(spans, next)
		}
		last.last = next.last
		return spans
	}
	both := span{next.first, next.last}
	if both.last.Compare(last.last) > 0 {
		both.last, last.last = last.last, both.last
	}
	s.twice += both.count()
	s.example = both.last
	return spans
}
