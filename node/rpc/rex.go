package rpc

import (
	"bytes"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// Rex is the server rex, which calls functions for nodes that send no spawn
// requests:
//
//	{call | block_call, M, F, A, GroupLeader}   as a call: the result
//	{Pid, {call, M, F, A, GroupLeader}}         as a message: {rex, Result} to Pid
//	{cast, M, F, A, GroupLeader}                as a cast
//	{Pid, features_request}                     {features_reply, Node, [erpc]}
//
// An exception becomes {badrpc, {'EXIT', Reason}}, but a throw its value. The
// group leader, where output would go, is not used.
type Rex struct {
	Node  etf.Atom
	Table Table
}

var (
	_ genserver.Handler = (*Rex)(nil)
	_ genserver.Slow    = (*Rex)(nil)
)

// HandleCall is not called: see HandleSlowCall.
func (x *Rex) HandleCall([]byte, []byte, etf.Caps) []byte { return nil }

// HandleSlowCall answers a call. OTP's rex leaves what it does not know unanswered.
func (x *Rex) HandleSlowCall(from genserver.From, request []byte, c genserver.Caller) {
	to := from.Clone()
	x.run(c, request, func(result etf.Term) { to.Post(c, encode(result, c.Caps())) }, "call", "block_call")
}

// HandleCast carries out a cast, whose result nobody wants.
func (x *Rex) HandleCast(request []byte) {
	if call := decodeCall(request, "cast"); call != nil {
		x.execute(call)
	}
}

// HandleInfo answers the messages of C nodes and of rpc's own.
func (x *Rex) HandleInfo(message []byte, c genserver.Caller) {
	r := etf.NewReader(message)
	if r.Tuple() != 2 {
		return
	}
	pid := bytes.Clone(r.Pid())
	request := r.Raw()
	if r.Finish() != nil {
		return
	}
	if r := etf.NewReader(request); string(r.Atom()) == "features_request" {
		features := etf.Tuple{etf.Atom("features_reply"), x.Node, etf.List{etf.Atom("erpc")}}
		c.Answer(pid, nil, encode(features, c.Caps()))
		return
	}
	x.run(c, request, func(result etf.Term) {
		c.Post(pid, nil, encode(etf.Tuple{etf.Atom("rex"), result}, c.Caps()))
	}, "call")
}

// MaxRequest bounds the octets of a request: its arguments may come back, in the
// result or in the stack of an exception. A longer one is not looked at, and its
// result is system_limit.
const MaxRequest = 1 << 20

// largeRequest is the size from which a request is carried out at once: while it
// waited, nobody would count what it takes.
const largeRequest = 512

// run calls the function, if the request is one of words, and has the result posted.
func (x *Rex) run(c genserver.Caller, request []byte, post func(etf.Term), words ...etf.Atom) {
	if len(request) > MaxRequest {
		post(badRPC(etf.Atom("system_limit")))
		return
	}
	call := decodeCall(request, words...)
	switch {
	case call == nil:
	case len(request) > largeRequest:
		post(x.execute(call))
	case !c.Go(func() { post(x.execute(call)) }):
		post(badRPC(etf.Atom("system_limit")))
	}
}

// decodeCall gives M, F and A of {Word, M, F, A, GroupLeader}, if Word is one of
// words, else nil.
func decodeCall(request []byte, words ...etf.Atom) []etf.Term {
	term, err := etf.Decode(request)
	if err != nil {
		return nil
	}
	t, _ := term.(etf.Tuple)
	if len(t) != 5 {
		return nil
	}
	for _, word := range words {
		if t[0] == word {
			return t[1:4]
		}
	}
	return nil
}

func (x *Rex) execute(call []etf.Term) etf.Term {
	result, e := x.Table.execute(call)
	switch {
	case e == nil:
		return result
	case e.Class == Throw:
		return e.Reason
	case e.Class == Exit:
		return badRPC(e.Reason)
	}
	return badRPC(etf.Tuple{e.Reason, e.Stack})
}

func badRPC(reason etf.Term) etf.Term {
	return etf.Tuple{etf.Atom("badrpc"), etf.Tuple{etf.Atom("EXIT"), reason}}
}

// encode encodes a term, or that the peer cannot read it.
func encode(t etf.Term, caps etf.Caps) []byte {
	b, err := etf.Append(nil, t, caps)
	if err != nil {
		b, _ = etf.Append(nil, badRPC(etf.String(err.Error())), caps)
	}
	return b
}
