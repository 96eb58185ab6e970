package idserver

import (
	"context"
	"log/slog"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// HandleCall answers a gen_server:call at once, or if it is for more than MaxInline
// ids in its turn:
//
//	get, {get, Base}, {get, meta, 0..255}             {ok, Id}
//	{get_many, N}, {get_many, N, Base}                {ok, [Id]}
//	{get_binary, N}                                   {ok, <<Id/binary, ...>>}
//	{lease, N}                                        {ok, [{FirstId, Count}]}
//	{notional, Ms}                                    {ok, Id}
//	{notional, FromMs, ToMs}                          {ok, {LowestId, HighestId}}
//	{decompose, IdOrText}, {decompose, Text, Base}    {ok, [{Field, Value}]}
//	info                                              [{Property, Value}]
//	anything else                                     ok
//
// or {error, Reason}. A Base is 2 to 62 or canonical. A text is a string or a binary; a
// binary of an id's size is that id. An id in a reply is a binary, or with a Base a string.
func (s *Server) HandleCall(c genserver.Call) {
	var q request
	q.decode(c.Request)
	if q.n > MaxInline {
		s.answerInTurn(c, q)
		return
	}
	if q.op == opUnknown {
		s.Log.Warn("call not known, answered ok", "request", text(c.Request))
	}
	c.Reply(s.answer(c.Context(), &q, nil, c.Begin(), c.Caps()))
}

func (s *Server) answerInTurn(c genserver.Call, q request) {
	ctx, caps := c.Context(), c.Caps()
	c.ReplyInTurn(s.sizeOf(&q), func(dst []byte, room bool) []byte {
		if !room {
			s.count(q.op, ErrBusy)
			t := terms{dst: dst, caps: caps}
			t.result(ErrBusy)
			return t.dst
		}
		turn := s.TurnOfNode(q.n)
		defer turn.End() // when the answer is made
		return s.answer(ctx, &q, turn, dst, caps)
	})
}

// answer does what is asked for, and appends what comes of it.
func (s *Server) answer(ctx context.Context, q *request, turn *Turn, dst []byte, caps etf.Caps) []byte {
	t := terms{dst, caps, s.IDs.Format(), q.base}
	switch q.op {
	case opGet:
		if id, err := s.get(ctx, q); t.result(err) {
			t.id(id)
		}
	case opGetMany:
		if runs, err := s.GetMany(ctx, q.n, turn); t.result(err) {
			t.ids(runs)
		}
	case opGetBinary:
		if runs, err := s.GetBinary(ctx, q.n, turn); t.result(err) {
			t.packed(runs)
		}
	case opLease:
		if runs, err := s.Lease(ctx, q.n, turn); t.result(err) {
			t.runs(runs)
		}
	case opNotional:
		if id, err := s.Notional(q.first); t.result(err) {
			t.id(id)
		}
	case opSpan:
		if lowest, highest, err := s.Span(q.first, q.last); t.result(err) {
			t.tuple(2)
			t.id(lowest)
			t.id(highest)
		}
	case opDecompose:
		if _, fields, err := s.Decompose(q.text, q.base); t.result(err) {
			t.fields(fields)
		}
	case opInfo:
		t.info(s.Info())
	case opInvalid:
		s.count(opInvalid, ErrBadArgument)
		t.result(ErrBadArgument)
	default:
		s.count(opUnknown, nil)
		t.atom("ok")
	}
	return t.dst
}

func (s *Server) get(ctx context.Context, q *request) (Number, error) {
	if q.hasMeta {
		return s.GetMeta(ctx, q.meta)
	}
	return s.Get(ctx)
}

// sizeOf returns the bytes that an answer has at most; a lease more only if others
// take ids all the while.
func (s *Server) sizeOf(q *request) int {
	const heads = 32 // of the answer and of one element, with an integer in it
	format := s.IDs.Format()
	width := len(AppendID(nil, format, highest(format.Size()), q.base))
	switch q.op {
	case opGetMany:
		const head = 5 // of a binary; of a string it is 3
		return heads + q.n*(head+width)
	case opGetBinary:
		return heads + q.n*width
	}
	return heads + (2+q.n/s.share())*(heads+width)
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
