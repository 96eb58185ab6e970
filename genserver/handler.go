package genserver

import (
	"context"

	"github.com/flake-go/flake/node/etf"
)

// Handler is what a gen_server does. Its methods are called by many goroutines
// at once. Terms are external terms, valid until the method returns.
type Handler interface {
	// HandleCall answers a call, at most once. Without an answer it is left as
	// {noreply, State} leaves it.
	HandleCall(c Call)
	// HandleCast takes what gen_server:cast sent.
	HandleCast(request []byte, c Caller)
	// HandleInfo takes any other message. Who sent it is for the message to say.
	HandleInfo(message []byte, c Caller)
	// State returns what sys:get_state and sys:get_status show.
	State() etf.Term
}

// Plain is the part of a Handler that most have no use for: it drops casts and
// messages, and its state is [].
type Plain struct{}

func (Plain) HandleCast([]byte, Caller) {}
func (Plain) HandleInfo([]byte, Caller) {}
func (Plain) State() etf.Term           { return etf.List{} }

// Build appends a term to dst that is sent later. Without room, as too much is under
// way, it is to say so in a few bytes.
type Build = func(dst []byte, room bool) []byte

// Caller is who sent a message, and the way back. It is valid until the Handler's
// method returns.
type Caller interface {
	// Caps tells what terms the peer can read.
	Caps() etf.Caps
	// Context ends with the connection: nobody waits for an answer then.
	Context() context.Context

	// Buffer returns an empty buffer to build what is sent next in.
	Buffer() []byte
	// Send sends a term to a process, to its alias if that is not nil.
	Send(pid, alias, term []byte)
	// SendAside sends what build returns, unless that is nil. It calls build on
	// another goroutine, or at once if there is no room.
	SendAside(pid, alias []byte, build Build)
	// SendInTurn is SendAside of a term of up to size bytes. What the process that
	// called asks meanwhile is answered after it.
	SendInTurn(pid, alias []byte, size int, build Build)
}

// Call is a call: its request, and who waits for the reply. A reply is one term that
// the caller can read, as Caps tells.
type Call struct {
	Caller
	From    From
	Request []byte
}

// Begin returns a buffer to append the reply to, for Reply.
func (c Call) Begin() []byte { return c.From.begin(c.Buffer()) }

// Reply answers the call with what was appended to the buffer of Begin.
func (c Call) Reply(b []byte) { c.Send(c.From.Pid, c.From.Alias, b) }

// ReplyAside answers the call with what build appends to dst, as [Caller].SendAside does.
func (c Call) ReplyAside(build Build) {
	c.SendAside(c.From.Pid, c.From.Alias, c.From.around(build))
}

// ReplyInTurn answers the call with the up to size bytes that build appends to dst, as
// [Caller].SendInTurn does. build must not use terms that were made of the request.
func (c Call) ReplyInTurn(size int, build Build) {
	c.SendInTurn(c.From.Pid, c.From.Alias, len(c.From.begin(nil))+size, c.From.around(build))
}
