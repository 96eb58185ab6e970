package flakeserver

import (
	"log/slog"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// HandleCall answers a gen_server:call at once, or if it is for more than MaxInline
// ids in its turn.
func (s *Server) HandleCall(c genserver.Call) {
	var q Request
	q.decode(c.Request)
	if q.large() {
		s.answerInTurn(q, c)
		return
	}
	s.note(&q, c.Request)
	var r Reply
	s.serve(c.Context(), &q, &r, nil)
	c.Reply(r.AppendTerm(c.Begin(), c.Caps()))
}

func (s *Server) answerInTurn(q Request, c genserver.Call) {
	ctx, caps := c.Context(), c.Caps()
	c.ReplyInTurn(s.sizeOf(q), func(dst []byte, room bool) []byte {
		r := Reply{Op: q.Op, Err: ErrBusy}
		if room {
			t := s.turns.turn(ofNodes, q.N)
			defer t.end() // when the answer is made
			s.serve(ctx, &q, &r, t)
		} else {
			s.counts.add(&r)
		}
		return r.AppendTerm(dst, caps)
	})
}

// sizeOf gives the octets that an answer has at most; a lease more only if others
// take ids all the while.
func (s *Server) sizeOf(q Request) int {
	const heads = 32 // of the answer and of one element, with an integer in it
	format := s.IDs.Format()
	id := Reply{Base: q.Base, Format: format}
	width := len(id.AppendID(nil, highest(format.Size())))
	switch q.Op {
	case OpGetMany:
		const head = 5 // of a binary; of a string it is 3
		return heads + q.N*(head+width)
	case OpGetBinary:
		return heads + q.N*width
	}
	return heads + (2+q.N/share)*(heads+width)
}

// note logs what is not known.
func (s *Server) note(q *Request, request []byte) {
	if q.Op == OpUnknown {
		s.Log.Warn("call not known, answered ok", "request", text(request))
	}
}

// State is what sys:get_state shows, the original's record:
//
//	{state, LastMilliseconds, Worker, LastSequence}
func (s *Server) State() etf.Term {
	milli, sequence := s.IDs.Last()
	return etf.Tuple{etf.Atom("state"), int64(milli), int64(s.IDs.Worker()), int64(sequence)}
}

// HandleCast drops what was cast.
func (s *Server) HandleCast(request []byte, _ genserver.Caller) {
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
