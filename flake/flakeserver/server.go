package flakeserver

import (
	"context"
	"log/slog"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// Server answers requests from one source of ids. Any number of goroutines may
// use it.
type Server struct {
	IDs Source
	Log *slog.Logger
}

var (
	_ genserver.Handler = (*Server)(nil)
	_ genserver.Stater  = (*Server)(nil)
)

// Serve answers a request: all of it, or with an error. ctx ends a wait.
func (s *Server) Serve(ctx context.Context, q Request) Reply {
	r := Reply{Op: q.Op, Base: q.Base, Format: s.IDs.Format()}
	switch q.Op {
	case OpGet:
		var run Run
		run, r.Err = s.IDs.Reserve(ctx, 1, q.Meta)
		r.ID = run.First
	case OpUnknown:
	default:
		r.Err = ErrBadArgument
	}
	return r
}

// reserve takes n ids, ascending, or none.
func (s *Server) reserve(ctx context.Context, n int) (runs []Run, err error) {
	for n > 0 {
		run, err := s.IDs.Reserve(ctx, n, 0)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
		n -= run.Count
	}
	return runs, nil
}

// State is what sys:get_state shows, the original's record:
//
//	{state, LastMilliseconds, Worker, LastSequence}
func (s *Server) State() etf.Term {
	milli, sequence := s.IDs.Last()
	return etf.Tuple{etf.Atom("state"), int64(milli), int64(s.IDs.Worker()), int64(sequence)}
}

// HandleCall answers a gen_server:call.
func (s *Server) HandleCall(dst, request []byte, caps etf.Caps) []byte {
	r := s.Serve(context.Background(), DecodeRequest(request))
	if r.Op == OpUnknown {
		s.Log.Warn("call not known, answered ok", "request", text(request))
	}
	return r.AppendTerm(dst, caps)
}

// HandleCast drops what was cast.
func (s *Server) HandleCast(request []byte) {
	s.Log.Debug("cast dropped", "request", text(request))
}

// HandleInfo drops the message.
func (s *Server) HandleInfo(message []byte, _ genserver.Caller) {
	s.Log.Debug("message dropped", "message", text(message))
}

// text is a term as Erlang text, made only if it is logged.
type text []byte

func (t text) LogValue() slog.Value {
	const shown = 200
	return slog.StringValue(string(etf.FormatRaw(nil, t, shown)))
}
