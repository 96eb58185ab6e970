package loadgen

import (
	"slices"

	"github.com/flake-go/flake/flake/formats"
)

// A span is a range of consecutive ids, from first to last.
type span struct{ first, last formats.Number }

func (s span) count() uint64 { return s.last.Lo - s.first.Lo + 1 }

// Limits of seen. Its spans take 32 bytes each, and three times that while they are merged.
const (
	maxSpans = 2 << 20 // spans in order; once there are more, no more ids are compared
	maxFresh = 1 << 18 // spans waiting to be put in order
)

// seen finds ids that repeat. It joins consecutive ids into one span, in whatever order they
// arrive, so if the node has no other callers, its ids take one span per tick.
type seen struct {
	spans []span // ascending, and never adjacent
	fresh []span // not yet merged into spans
	most  int    // the maximum number of spans
	full  bool

	compared uint64
	twice    uint64         // compared ids that repeated an earlier one
	example  formats.Number // the latest repeated id
}

// add adds ids, unless seen is full.
func (s *seen) add(ids []span) {
	if s.full {
		return
	}
	s.fresh = append(s.fresh, ids...)
	if len(s.fresh) >= maxFresh {
		s.settle()
	}
}

// settle merges fresh into spans and joins consecutive spans.
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

// join appends next, which must not begin before the last span does.
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
