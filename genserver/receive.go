package genserver

import (
	"bytes"
	"context"
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// Handler is what a gen_server does. Its methods are called by many goroutines
// at once. Terms are external terms, valid until the method returns.
type Handler interface {
	// HandleCall appends the reply to a call, one term that a peer with the
	// capabilities can read. Nil leaves the caller without a reply, as
	// {noreply, State} does.
	HandleCall(dst, request []byte, caps etf.Caps) []byte
	// HandleCast takes what gen_server:cast sent.
	HandleCast(request []byte, c Caller)
	// HandleInfo takes any other message. Who sent it is for the message to say.
	HandleInfo(message []byte, c Caller)
}

// Caller is the way back to who sent a message.
type Caller interface {
	Caps() etf.Caps
	// Serial is a number of the connection's.
	Serial() int
	// Context ends with the connection: nobody waits for an answer then.
	Context() context.Context
	// Buffer gives an empty buffer to build a message in, until Answer.
	Buffer() []byte
	// Answer sends a message to a process, to its alias if that is not nil.
	Answer(pid, alias, message []byte)

	// Go runs f on a goroutine of its own, unless too many of the caller's run.
	// There Post takes the place of Answer. GoInOrder is Go for what a process is
	// answered: its later requests to the server are answered later.
	Go(f func()) bool
	GoInOrder(f func()) bool
	Post(pid, alias, message []byte)

	// Turn waits, in an f of Go, until it is the turn of a message of up to size
	// octets. Of one caller only one has its turn at a time, until done, which
	// waits until the message is written: what else is for the caller waits for
	// no more than one. Not ok: there is no room for it, or the caller is gone.
	Turn(size int) (done func(), ok bool)
}

// Slow is a Handler whose calls may take long. They are answered in their own
// time, and what else the caller sends is not held up.
type Slow interface {
	// HandleSlowCall takes a call, and what answers it: HandleCall is not called.
	HandleSlowCall(from From, request []byte, c Caller)
}

// Server is one life of a gen_server.
type Server struct {
	Name    etf.Atom
	Module  etf.Atom // the callback module that a BEAM would have
	Pid     etf.Pid
	Parent  etf.Pid  // of its supervisor
	Family  etf.Atom // the supervisor's name
	Handler Handler

	// End, unless nil, ends this life with a reason, as who sends to terminate it
	// wants. The Parent then begins the next.
	End func(reason etf.Term)
}

// Receive takes one message to the server and answers it if it is a call. An
// error means that the message looked like a call or a cast and was none; it is
// not answered, as OTP leaves it.
func (s *Server) Receive(message []byte, c Caller) error {
	r := etf.NewReader(message)
	arity := r.Tuple()
	switch word := r.Atom(); {
	case arity == 3 && string(word) == "$gen_call":
		return s.receiveCall(&r, c)
	case arity == 3 && string(word) == "system":
		return s.receiveSystem(&r, c)
	case arity == 2 && string(word) == "$gen_cast":
		request := r.Raw()
		if err := r.Finish(); err != nil {
			return fmt.Errorf("$gen_cast: %w", err)
		}
		s.Handler.HandleCast(request, c)
	default:
		return s.receiveInfo(message, c)
	}
	return nil
}

func (s *Server) receiveInfo(message []byte, c Caller) error {
	r := etf.NewReader(message)
	r.Raw()
	if err := r.Finish(); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	s.Handler.HandleInfo(message, c)
	return nil
}

func (s *Server) receiveCall(r *etf.Reader, c Caller) error {
	var from From
	from.read(r)
	request := r.Raw()
	if err := r.Finish(); err != nil {
		return fmt.Errorf("$gen_call: %w", err)
	}
	if slow, ok := s.Handler.(Slow); ok {
		slow.HandleSlowCall(from, request, c)
	} else if b := s.Handler.HandleCall(from.Begin(c.Buffer()), request, c.Caps()); b != nil {
		c.Answer(from.Pid, from.Alias, b)
	}
	return nil
}

// From says who called, as the octets that came.
type From struct {
	Pid   []byte
	Tag   []byte
	Alias []byte // the reference of a Tag [alias | Reference], else nil
}

// Clone gives a From that stays when the message is gone.
func (f *From) Clone() From {
	return From{Pid: bytes.Clone(f.Pid), Tag: bytes.Clone(f.Tag), Alias: bytes.Clone(f.Alias)}
}

// Post answers a clone with {Tag, Reply}, the Reply being one term.
func (f *From) Post(c Caller, reply []byte) {
	c.Post(f.Pid, f.Alias, append(f.Begin(nil), reply...))
}

// read reads {Pid, Tag}.
func (f *From) read(r *etf.Reader) {
	r.Tuple()
	f.Pid = r.Pid()
	f.Tag = r.Raw()
	tag := etf.NewReader(f.Tag)
	if tag.ListHeader() == 1 && string(tag.Atom()) == "alias" {
		f.Alias = tag.Ref()
	}
}

// Begin begins the answer {Tag, Reply}: one term, the Reply, is to be appended.
func (f *From) Begin(dst []byte) []byte { return append(etf.AppendTupleHeader(dst, 2), f.Tag...) }
