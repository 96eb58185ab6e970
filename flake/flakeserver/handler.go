package flakeserver

import (
	"context"
	"log/slog"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

var (
	_ genserver.Handler = (*Server)(nil)
	_ genserver.Slow    = (*Server)(nil)
	_ genserver.Stater  = (*Server)(nil)
)

// HandleCall answers a gen_server:call.
func (s *Server) HandleCall(dst, request []byte, caps etf.Caps) []byte {
	var q Request
	q.decode(request)
	s.note(&q, request)
	r := s.Serve(context.Background(), q)
	return r.AppendTerm(dst, caps)
}

// HandleSlowCall answers a call at once, or if it is for more than MaxInline ids
// in its turn, and what the caller asks after that still later.
func (s *Server) HandleSlowCall(from genserver.From, request []byte, c genserver.Caller) {
	var q Request
	q.decode(request)
	if q.large() {
		s.answerInTurn(from.Clone(), q, c)
		return
	}
	s.note(&q, request)
	var r Reply
	s.serve(c.Context(), &q, &r, c.Serial(), nil)
	c.Answer(from.Pid, from.Alias, r.AppendTerm(from.Begin(c.Buffer()), c.Caps()))
}

func (s *Server) answerInTurn(from genserver.From, q Request, c genserver.Caller) {
	runs := c.GoInOrder(func() {
		size := s.sizeOf(q)
		done, ok := c.Turn(size)
		if !ok {
			s.refuse(from, q, c)
			return
		}
		defer done()
		c.Post(from.Pid, from.Alias, s.answerLarge(from, size, q, c))
	})
	if !runs {
		s.refuse(from, q, c)
	}
}

func (s *Server) answerLarge(from genserver.From, size int, q Request, c genserver.Caller) []byte {
	t := s.turns.turn(ofNodes, q.N)
	defer t.end() // when the answer is made
	var r Reply
	s.serve(c.Context(), &q, &r, c.Serial(), t)
	return r.AppendTerm(from.Begin(make([]byte, 0, len(from.Tag)+size)), c.Caps())
}

// refuse answers what there is no room for.
func (s *Server) refuse(from genserver.From, q Request, c genserver.Caller) {
	r := Reply{Op: q.Op, Err: ErrBusy}
	s.counts.add(c.Serial(), &r)
	c.Post(from.Pid, from.Alias, r.AppendTerm(from.Begin(nil), c.Caps()))
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
