package rpc

import (
	"bytes"
	"slices"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
)

// Rex is the server rex, which calls functions for nodes that do not send spawn requests:
//
//	{call | block_call, M, F, A, GroupLeader}   as a call: the result
//	{Pid, {call, M, F, A, GroupLeader}}         as a message: {rex, Result} to Pid
//	{cast, M, F, A, GroupLeader}                as a cast
//	{Pid, {sbcast, Name, Message}}              {rex, Node, Node} to Pid, after Message is sent to Name
//	{Pid, features_request}                     {features_reply, Node, [erpc]} to Pid
//	stop                                        as a call: stopped
//
// An exception results in {badrpc, {'EXIT', Reason}}, and a throw results in the thrown value. The
// group leader is not used.
type Rex struct {
	genserver.Plain
	Node  etf.Atom
	Table Table

	// Send sends a message to the process registered as name, and reports whether there is one.
	Send func(name etf.Atom, message []byte, c genserver.Caller) bool
}

// HandleCall answers a call. Like OTP's rex, it does not answer unknown calls.
func (x *Rex) HandleCall(c genserver.Call) {
	caps := c.Caps()
	if r := etf.NewReader(c.Request); string(r.Atom()) == "stop" {
		// This rex has no state, so a restart would change nothing.
		c.Reply(etf.MustAppendAtom(c.Begin(), "stopped", caps))
		return
	}
	if run := x.decode(c.Request, "call", "block_call"); run != nil {
		c.Later(func(c genserver.Call) { c.Reply(append(c.Begin(), encode(run(c.Grow(0)), caps)...)) })
	}
}

// HandleCast performs a cast and discards its result.
func (x *Rex) HandleCast(request []byte, c genserver.Caller) {
	if run := x.decode(request, "cast"); run != nil {
		c.Later(func(c genserver.Caller) { run(c.Grow(0)) })
	}
}

// HandleInfo answers messages from C nodes and from OTP's rpc.
func (x *Rex) HandleInfo(message []byte, c genserver.Caller) {
	r := etf.NewReader(message)
	if r.Tuple() != 2 {
		return
	}
	pid, caps := r.Pid(), c.Caps()
	request := r.Raw()
	if r.Finish() != nil {
		return
	}
	if r := etf.NewReader(request); string(r.Atom()) == "features_request" {
		features := etf.Tuple{etf.Atom("features_reply"), x.Node, etf.List{etf.Atom("erpc")}}
		c.Send(pid, nil, encode(features, caps))
		return
	}
	if r := etf.NewReader(request); r.Tuple() == 3 && string(r.Atom()) == "sbcast" {
		c.Send(pid, nil, encode(x.sbcast(&r, c), caps))
		return
	}
	if run := x.decode(request, "call"); run != nil {
		pid = bytes.Clone(pid)
		c.Later(func(c genserver.Caller) {
			c.Send(pid, nil, encode(etf.Tuple{etf.Atom("rex"), run(c.Grow(0))}, caps))
		})
	}
}

// sbcast forwards the message of rpc:sbcast and returns the answer. It refuses messages to rex,
// because they could nest without limit.
func (x *Rex) sbcast(r *etf.Reader, c genserver.Caller) etf.Term {
	raw := r.Raw()
	name := etf.NewReader(raw)
	to := etf.Atom(name.Atom())
	var from etf.Term = x.Node
	if name.Finish() != nil || to != "rex" && !x.Send(to, r.Raw(), c) {
		term, _ := etf.Decode(raw)
		from = etf.Tuple{etf.Atom("nonexisting_name"), term}
	}
	return etf.Tuple{etf.Atom("rex"), x.Node, from}
}

// MaxRequest bounds the bytes of a request, because its arguments can be part of the result or of
// the stack of an exception. A longer request is not decoded, and its result is system_limit.
const MaxRequest = 1 << 20

// decode returns a function that performs a request and returns its result. It returns
// nil if the request does not begin with one of words.
func (x *Rex) decode(request []byte, words ...etf.Atom) func(room bool) etf.Term {
	r := etf.NewReader(request)
	if r.Tuple() != 5 || !slices.Contains(words, etf.Atom(r.Atom())) { // {Word, M, F, A, GroupLeader}
		return nil
	}
	var call []etf.Term // nil if it exceeds a limit
	if len(request) <= MaxRequest {
		if term, err := etf.Decode(request); err == nil {
			call = term.(etf.Tuple)[1:4]
		}
	}
	return func(room bool) etf.Term {
		if call == nil || !room {
			return badRPC(etf.Atom("system_limit"))
		}
		return x.execute(call)
	}
}

func (x *Rex) execute(call []etf.Term) etf.Term {
	result, e := x.Table.Execute(call)
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

// encode encodes a term, or a badrpc if the peer cannot read the term.
func encode(t etf.Term, caps etf.Caps) []byte {
	b, err := etf.Append(nil, t, caps)
	if err != nil {
		b, _ = etf.Append(nil, badRPC(etf.String(err.Error())), caps)
	}
	return b
}
