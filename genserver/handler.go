package genserver

import (
	"context"
	"sync/atomic"

	"github.com/flake-go/flake/node/etf"
)

// Handler implements a gen_server. Many goroutines call its methods at once. Terms
// are external terms, valid until the method returns.
type Handler interface {
	// HandleCall answers a call at most once. Not answering is {noreply, State}.
	HandleCall(c Call)
	// HandleCast handles what gen_server:cast sent.
	HandleCast(request []byte, c Caller)
	// HandleInfo handles any other message. Only the message can say who sent it.
	HandleInfo(message []byte, c Caller)
	// State returns what sys:get_state and sys:get_status show.
	State() etf.Term
}

// Plain supplies the methods that most Handlers do not need: it drops casts and
// messages, and its state is [].
type Plain struct{}

func (Plain) HandleCast([]byte, Caller) {}
func (Plain) HandleInfo([]byte, Caller) {}
func (Plain) State() etf.Term           { return etf.List{} }

// Build appends a term, sent later, to dst. If there is no room because too much is
// under way, it appends a short refusal.
type Build = func(dst []byte, room bool) []byte

// Caller is the sender of a message and the way back to it. It is valid until the
// Handler's method returns.
type Caller interface {
	// Caps returns which terms the peer can read.
	Caps() etf.Caps
	// Context ends with the connection: after that nobody waits for a reply.
	Context() context.Context

	// Given is where a Handler adds what it gives the peer, such as ids. It outlives the
	// message.
	Given() *atomic.Uint64

	// Buffer returns an empty buffer in which to build what is sent next.
	Buffer() []byte
	// Send sends a term to a process, or to its alias if that is not nil.
	Send(pid, alias, term []byte)
	// SendAside sends what build returns, unless that is nil. It calls build on
	// another goroutine, or at once if there is no room.
	SendAside(pid, alias []byte, build Build)
	// SendInTurn is SendAside for a term of up to size bytes. Later requests of the
	// calling process are answered after it.
	SendInTurn(pid, alias []byte, size int, build Build)
}

// Call is a request and who waits for the reply. The reply is one term that the
// caller can read, as Caps reports.
type Call struct {
	Caller
	From    From
	Request []byte
}

// Begin returns a buffer for Reply, to which the reply is appended.
func (c Call) Begin() []byte { return c.From.begin(c.Buffer()) }

// Reply answers the call with what was appended to the buffer from Begin.
func (c Call) Reply(b []byte) { c.Send(c.From.Pid, c.From.Alias, b) }

// ReplyAside answers the call with what build appends to dst, as [Caller].SendAside does.
func (c Call) ReplyAside(build Build) {
	c.SendAside(c.From.Pid, c.From.Alias, c.From.around(build))
}

// ReplyInTurn answers the call with up to size bytes that build appends to dst, as
// [Caller].SendInTurn does. build must not use terms decoded from the request.
func (c Call) ReplyInTurn(size int, build Build) {
	c.SendInTurn(c.From.Pid, c.From.Alias, len(c.From.begin(nil))+size, c.From.around(build))
}
