package rpc

import (
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

var _ genserver.Handler = (*Rex)(nil)

// HandleCall answers a call. OTP's rex leaves what it does not know unanswered.
func (x *Rex) HandleCall(dst, request []byte, caps etf.Caps) []byte {
	result, ok := x.call(request, "call", "block_call")
	if !ok {
		return nil
	}
	return appendResult(dst, result, caps)
}

// HandleCast carries out a cast.
func (x *Rex) HandleCast(request []byte) { x.call(request, "cast") }

// HandleInfo answers the messages of C nodes and of rpc's own.
func (x *Rex) HandleInfo(message []byte, c genserver.Caller) {
	r := etf.NewReader(message)
	if r.Tuple() != 2 {
		return
	}
	pid := r.Pid()
	request := r.Raw()
	if r.Finish() != nil {
		return
	}
	if r := etf.NewReader(request); string(r.Atom()) == "features_request" {
		x.answer(pid, etf.Tuple{etf.Atom("features_reply"), x.Node, etf.List{etf.Atom("erpc")}}, c)
		return
	}
	if result, ok := x.call(request, "call"); ok {
		x.answer(pid, etf.Tuple{etf.Atom("rex"), result}, c)
	}
}

func (x *Rex) answer(pid []byte, message etf.Term, c genserver.Caller) {
	c.Answer(pid, nil, appendResult(c.Buffer(), message, c.Caps()))
}

// call carries out {Word, M, F, A, GroupLeader} if Word is one of words.
func (x *Rex) call(request []byte, words ...etf.Atom) (result etf.Term, ok bool) {
	term, err := etf.Decode(request)
	if err != nil {
		return nil, false
	}
	t, _ := term.(etf.Tuple)
	if len(t) != 5 {
		return nil, false
	}
	for _, word := range words {
		if t[0] == word {
			return x.execute(t[1:4]), true
		}
	}
	return nil, false
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

// appendResult appends a term, or that the peer cannot read it.
func appendResult(dst []byte, t etf.Term, caps etf.Caps) []byte {
	b, err := etf.Append(dst, t, caps)
	if err != nil {
		b, _ = etf.Append(dst, badRPC(etf.String(err.Error())), caps)
	}
	return b
}
