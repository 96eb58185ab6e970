// Package genserver implements a gen_server as its callers see it: it receives the messages of
// OTP's gen_server:call and cast, and sends the replies.
//
// A [Handler] corresponds to a callback module. [Server.Receive] parses a message and calls
// the Handler. Receive and the methods of the Handler may be called concurrently. A [Call] can be
// answered immediately or later. Its [Caller], a connection, schedules later answers and bounds the
// size of answers.
//
// The messages are those of OTP's gen.erl and gen_server.erl:
//
//	{'$gen_call', {To, Tag}, Request}   answered by {Tag, Reply} to To
//	{'$gen_cast', Request}
//	{system, {To, Tag}, Request}        from module sys, such as get_state
//	anything else                       handle_info
//
// To is a pid, an alias or {Name, Node}. A Tag is any term, usually a reference or
// [alias | Reference]. It is returned unchanged, byte for byte. If it contains an alias, the reply
// is sent to that, so that the caller's node drops a reply that arrives after the timeout.
package genserver

import (
	"bytes"
	"context"

	"github.com/flake-go/flake/node/etf"
)

// Handler implements a gen_server. Its methods are called concurrently. Their arguments are
// external terms that are valid until the method returns.
type Handler interface {
	// HandleCall answers a call at most once. Not answering corresponds to {noreply, State}.
	HandleCall(c Call)
	// HandleCast handles a message from gen_server:cast.
	HandleCast(request []byte, c Caller)
	// HandleInfo handles any other message. The sender is unknown unless the message
	// contains it.
	HandleInfo(message []byte, c Caller)
	// State returns the state for sys:get_state and sys:get_status.
	State() etf.Term
}

// Plain implements the methods that most Handlers do not need: it drops casts and messages,
// and its state is [].
type Plain struct{}

func (Plain) HandleCast([]byte, Caller) {}
func (Plain) HandleInfo([]byte, Caller) {}
func (Plain) State() etf.Term           { return etf.List{} }

// Caller sends answers to the sender of a message. It is valid until the Handler's method or
// the function passed to Later returns.
type Caller interface {
	// Caps returns the forms of terms that the peer can read.
	Caps() etf.Caps
	// Context returns a context that ends with the connection; no reply can be sent after that.
	Context() context.Context

	// Count adds n to the number of things, such as ids, that a Handler has sent to the peer.
	Count(n int)

	// Grow makes room for a term of up to size bytes in the next Buffer. It may wait. It returns
	// false if too much memory is in use; then only a short refusal may be sent.
	Grow(size int) bool
	// Buffer returns an empty buffer for the term of the next Send.
	Buffer() []byte
	// Send sends a term to a process, or to its alias if alias is not nil. to is a [From]'s To.
	Send(to, alias, term []byte)

	// Later calls f on another goroutine, unless the connection ends first. Further requests from
	// the calling process wait until f returns. If memory is short, Later calls f immediately,
	// and Grow returns false when f calls it.
	Later(f func(Caller))
}

// Call is a request and its caller. The reply must be one term in a form that Caps allows.
type Call struct {
	Caller
	From    From
	Request []byte
}

// tupleHeader is the size of the header of the answer, {Tag, Reply}.
const tupleHeader = 2

// Grow is like [Caller].Grow, for the reply.
func (c Call) Grow(size int) bool { return c.Caller.Grow(tupleHeader + len(c.From.Tag) + size) }

// Begin returns a buffer to append the reply to.
func (c Call) Begin() []byte { return append(etf.AppendTupleHeader(c.Buffer(), 2), c.From.Tag...) }

// Reply answers the call. b is the buffer from Begin with the reply appended.
func (c Call) Reply(b []byte) { c.Send(c.From.To, c.From.Alias, b) }

// Later is like [Caller].Later, with a Call that has no Request.
func (c Call) Later(f func(Call)) {
	from := From{bytes.Clone(c.From.To), bytes.Clone(c.From.Tag), bytes.Clone(c.From.Alias)}
	c.Caller.Later(func(to Caller) { f(Call{Caller: to, From: from}) })
}
