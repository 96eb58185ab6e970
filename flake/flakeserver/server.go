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

	// large is held by who makes more than MaxInline ids, so that all of them
	// together take no more than one processor, and one share of a tick's ids.
	large  sync.Mutex
	counts counts
}

// share is the most ids of a large request that are taken at once. Then others
// have a chance, as else one could use up tick after tick.
const share = 1024

// Serve answers a request: all of it, or with an error. ctx ends a wait.
func (s *Server) Serve(ctx context.Context, q Request) (r Reply) {
	if q.large() {
		s.large.Lock()
		defer s.large.Unlock()
	}
	s.serve(ctx, &q, &r, 0)
	return r
}

// serve answers a request of a connection, and counts it. Who asks for much holds
// s.large. The reply is empty before.
func (s *Server) serve(ctx context.Context, q *Request, r *Reply, connection int) {
	r.Op, r.Base, r.Format = q.Op, q.Base, s.IDs.Format()
	if !q.valid() || q.HasMeta && !r.Format.Meta() || q.large() && q.N > MaxTicks*s.IDs.PerTick() {
		r.Err = ErrBadArgument
	} else {
		s.answer(ctx, q, r)
	}
	s.counts.add(connection, r)
}

func (s *Server) answer(ctx context.Context, q *Request, r *Reply) {
	switch q.Op {
	case OpGet:
		var run Run
		run, r.Err = s.IDs.Reserve(ctx, 1, q.Meta)
		r.ID = run.First
	case OpGetMany, OpGetBinary, OpLease:
		r.Runs, r.Err = s.reserve(ctx, q.N)
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

// reserve takes n ids, ascending, or none.
func (s *Server) reserve(ctx context.Context, n int) (runs []Run, err error) {
	for n > 0 {
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
