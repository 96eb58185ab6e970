package flakeserver

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Server answers requests from one source of ids. Any number of goroutines may
// use it. It must not be copied.
type Server struct {
	IDs     Source
	Log     *slog.Logger
	Version string
	Started time.Time

	turns      turns      // of requests for more than MaxInline ids
	generating sync.Mutex // held by a call of flake_harness
	counts     counts
}

// Serve answers a request of who is no node: all of it, or with an error. At the
// end of ctx no more ids are taken for it.
func (s *Server) Serve(ctx context.Context, q Request) (r Reply) {
	var t *turn
	if q.large() {
		t = s.turns.turn(ofOthers, q.N)
		defer t.end()
	}
	s.serve(ctx, &q, &r, t)
	return r
}

// serve answers a request, and counts it. If it is a large one, ids
// are taken in its turn, the last of which is the caller's to end. The reply is empty
// before.
func (s *Server) serve(ctx context.Context, q *Request, r *Reply, t *turn) {
	r.Op, r.Base, r.Format = q.Op, q.Base, s.IDs.Format()
	if !q.valid() || q.HasMeta && !r.Format.Meta() || q.large() && q.N > MaxTicks*s.IDs.PerTick() {
		r.Err = ErrBadArgument
	} else {
		s.answer(ctx, q, r, t)
	}
	s.counts.add(r)
}

func (s *Server) answer(ctx context.Context, q *Request, r *Reply, t *turn) {
	switch q.Op {
	case OpGet:
		var run Run
		run, r.Err = s.IDs.Reserve(ctx, 1, q.Meta)
		r.ID = run.First
	case OpGetMany, OpGetBinary, OpLease:
		r.Runs, r.Err = s.reserve(ctx, q.N, t)
	case OpNotional:
		r.ID, _, r.Err = span(r.Format, q.First, q.First)
	case OpSpan:
		r.ID, r.Highest, r.Err = span(r.Format, q.First, q.Last)
	case OpDecompose:
		if r.ID, r.Err = Parse(r.Format, q.Text, q.Base); r.Err == nil {
			r.Fields = r.Format.Fields(r.ID)
		}
	case OpInfo:
		r.Info = s.Info()
	}
}

// reserve takes n ids, ascending, or fails. If t is not nil, in turns.
func (s *Server) reserve(ctx context.Context, n int, t *turn) (runs []Run, err error) {
	for n > 0 {
		if t != nil {
			if err := t.next(ctx); err != nil {
				return nil, err
			}
		}
		run, err := s.IDs.Reserve(ctx, min(n, share), 0)
		if err != nil {
			return nil, err
		}
		if n -= run.Count; n > 0 {
			runtime.Gosched()
		}
		if last := len(runs) - 1; last >= 0 && runs[last].First.Plus(runs[last].Count) == run.First {
			runs[last].Count += run.Count
		} else {
			runs = append(runs, run)
		}
	}
	// Those of one tick come in any order from a format that starts it anywhere.
	slices.SortFunc(runs, func(a, b Run) int { return a.First.Compare(b.First) })
	return runs, nil
}

func span(f Format, first, last uint64) (lowest, highest Number, err error) {
	if lowest, highest, err = f.Span(first, last); err != nil {
		return Number{}, Number{}, ErrBadArgument
	}
	return lowest, highest, nil
}

// Parse reads an id as OpDecompose does: digits in the base; with Canonical any of
// the format's own texts, or the id in base 16 as others write it; with Octets the
// id itself, or if it is not of an id's size, as Canonical. Anything else is
// ErrBadArgument.
func Parse(f Format, text string, base int) (id Number, err error) {
	switch {
	case base == Octets && len(text) == f.Size():
		return numberOf(text), nil
	case base == Octets || base == Canonical:
		if id, err = f.Parse(text); err != nil {
			id, err = parseHex(text, f.Size())
		}
	default:
		id, err = parseDigits(text, base, f.Size())
	}
	if err != nil {
		return Number{}, ErrBadArgument
	}
	return id, nil
}
