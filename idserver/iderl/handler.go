// Package iderl is flake's Erlang door. It turns a request, an external term, into a call of a
// method of [idserver.Server], and the result into a reply.
//
//	handler.go    the calls, and when and how each is answered
//	request.go    how an external term becomes a request
//	reply.go      how an id server's results become external terms
//	functions.go  the functions that nodes call by rpc
//
// Servers and functions have the original's names. Start at [Handler.HandleCall].
package iderl

import (
	"context"
	"log/slog"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// Handler answers calls from Erlang nodes to an id server, as the original's gen_server
// flake_server does.
type Handler struct {
	Server *idserver.Server
	Log    *slog.Logger
}

// HandleCall answers a gen_server:call. A call for more than [idserver.MaxInline] ids is answered
// when its turn comes, and any other call immediately:
//
//	get, {get, Base}, {get, meta, 0..255}             {ok, Id}
//	{get_many, N}, {get_many, N, Base}                {ok, [Id]}
//	{get_binary, N}                                   {ok, <<Id/binary, ...>>}
//	{lease, N}, {lease, meta, 0..255, N}              {ok, [{FirstId, Count}]}
//	{notional, Ms}                                    {ok, Id}
//	{notional, FromMs, ToMs}                          {ok, {LowestId, HighestId}}
//	{decompose, IdOrText}, {decompose, Text, Base}    {ok, [{Field, Value}]}
//	info                                              [{Property, Value}]
//	anything else                                     ok
//
// If the call fails, the reply is {error, Reason}. A Base is 2 to 62, canonical or crockford; for
// 128-bit ids also uuid, and for 64-bit ids also base32, base36, base58 or base64. A Text is a
// string or a binary; a binary of an id's size is that id. An id in a reply is a binary, or a
// string if the call has a Base.
func (h *Handler) HandleCall(c genserver.Call) {
	var q request
	q.decode(c.Request)
	if !h.Server.IDs.Format().HasBase(q.base) {
		q = request{kind: idserver.KindInvalid}
	}
	if q.kind == idserver.KindUnknown {
		h.Log.Warn("unknown call, answered ok", "request", text(c.Request))
	}
	if q.n > idserver.MaxInline {
		large := q // q stays on the stack
		c.Later(func(c genserver.Call) { h.reply(c, &large) })
		return
	}
	h.reply(c, &q)
}

// reply performs the request, replies with the result, and counts the ids returned.
func (h *Handler) reply(c genserver.Call, q *request) {
	turn := h.Server.TurnOfNode(q.n)
	defer turn.End()
	// Make room before taking ids. Small requests are never refused for lack of room.
	if q.n > 0 && !c.Grow(h.sizeOf(q)) {
		turn.Refuse()
	}
	t := terms{dst: c.Begin(), caps: c.Caps(), format: h.Server.IDs.Format(), base: q.base}
	if h.answer(c.Context(), q, turn, &t) {
		c.Count(max(q.n, 1))
	}
	c.Reply(t.dst)
}

// answer appends the result and reports whether it contains new ids.
func (h *Handler) answer(ctx context.Context, q *request, turn *idserver.Turn, t *terms) (given bool) {
	s := h.Server
	switch q.kind {
	case idserver.KindGet:
		if id, err := s.Get(ctx, q.meta); t.result(err) {
			t.id(id)
			return true
		}
	case idserver.KindGetMany, idserver.KindGetBinary, idserver.KindLease:
		if runs, err := s.Take(ctx, q.kind, q.n, q.meta, turn); t.result(err) {
			switch q.kind {
			case idserver.KindGetMany:
				t.ids(q.n, runs)
			case idserver.KindGetBinary:
				t.packed(q.n, runs)
			default:
				t.runs(runs)
			}
			return true
		}
	case idserver.KindNotional:
		if id, _, err := s.Span(q.kind, q.first, q.first); t.result(err) {
			t.id(id)
		}
	case idserver.KindSpan:
		if lowest, highest, err := s.Span(q.kind, q.first, q.last); t.result(err) {
			t.pair()
			t.id(lowest)
			t.id(highest)
		}
	case idserver.KindDecompose:
		if id, err := s.Decompose(q.text, q.base); t.result(err) {
			t.fields(t.format.Fields(id))
		}
	case idserver.KindInfo:
		t.info(s.Info(), s.Version)
	case idserver.KindInvalid:
		t.result(s.Count(q.kind, idserver.ErrBadArgument))
	default:
		s.Count(q.kind, nil)
		t.atom("ok")
	}
	return false
}

// sizeOf returns the maximum size of an answer in bytes. The answer to a lease may exceed it if
// other requests keep taking ids.
func (h *Handler) sizeOf(q *request) int {
	const heads = 32 // bytes around the ids of the answer, or around the id of one element of a lease
	width := h.Server.IDs.Format().Width(q.base)
	switch q.kind {
	case idserver.KindGetMany:
		const head = 5 // size of a binary's header; a string's is 3
		return heads + q.n*(head+width)
	case idserver.KindGetBinary:
		return heads + q.n*width
	}
	return heads + h.Server.MaxRuns(q.n)*(heads+width)
}

// State returns the state that sys:get_state shows, the original's record:
//
//	{state, LastMilliseconds, Worker, LastSequence}
func (h *Handler) State() etf.Term {
	ids := h.Server.IDs
	milli, sequence := ids.Last()
	return etf.Tuple{etf.Atom("state"), int64(milli), int64(ids.Worker()), int64(sequence)}
}

// HandleCast drops the request.
func (h *Handler) HandleCast(request []byte, _ genserver.Caller) {
	h.Log.Debug("cast dropped", "request", text(request))
}

// HandleInfo drops the message.
func (h *Handler) HandleInfo(message []byte, _ genserver.Caller) {
	h.Log.Debug("message dropped", "term", text(message))
}

// text is a term that is formatted as Erlang text only if it is logged.
type text []byte

func (t text) LogValue() slog.Value {
	const shown = 200
	return slog.StringValue(string(etf.FormatRaw(nil, t, shown)))
}

// Timer answers calls like the original's gen_server persistent_timer, which stores the time.
type Timer struct {
	genserver.Plain
	IDs formats.Source
}

// HandleCall answers get_last_timestamp with {ok, Milliseconds}, and anything else with ok.
func (t Timer) HandleCall(c genserver.Call) {
	r, reply := etf.NewReader(c.Request), terms{dst: c.Begin(), caps: c.Caps()}
	if string(r.Atom()) == "get_last_timestamp" {
		saved, _ := t.IDs.LastSaved()
		reply.result(nil)
		reply.dst = etf.AppendInt(reply.dst, saved.UnixMilli())
	} else {
		reply.atom("ok")
	}
	c.Reply(reply.dst)
}
