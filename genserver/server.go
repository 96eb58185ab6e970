package genserver

import (
	"context"
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// Server is one run of a gen_server.
type Server struct {
	Name    etf.Atom
	Module  etf.Atom // the callback module that a BEAM would have
	Pid     etf.Pid
	Parent  etf.Pid  // its supervisor's pid
	Family  etf.Atom // the supervisor's name
	Handler Handler

	// End, if not nil, ends the server with the reason given to sys:terminate. The Parent then
	// starts a new server.
	End func(reason etf.Term)
}

// Receive handles one message to the server. As in OTP, a malformed call is not answered, but
// Receive returns an error for it.
func (s *Server) Receive(message []byte, c Caller) error {
	r := etf.NewReader(message)
	arity := r.Tuple()
	switch word := r.Atom(); {
	case arity == 3 && (string(word) == "$gen_call" || string(word) == "system"):
		call := Call{c, readFrom(&r), r.Raw()}
		if err := r.Finish(); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
		if string(word) == "system" {
			return s.receiveSystem(call)
		}
		s.Handler.HandleCall(call)
	case arity == 2 && string(word) == "$gen_cast":
		request := r.Raw()
		if err := r.Finish(); err != nil {
			return fmt.Errorf("$gen_cast: %w", err)
		}
		s.Handler.HandleCast(request, c)
	default:
		r = etf.NewReader(message)
		r.Raw()
		if err := r.Finish(); err != nil {
			return fmt.Errorf("message: %w", err)
		}
		s.Handler.HandleInfo(message, c)
	}
	return nil
}

// From identifies the caller. Its fields hold the bytes received.
type From struct {
	To    []byte // the caller: a pid, an alias or {Name, Node}
	Tag   []byte
	Alias []byte // the reference if the Tag is [alias | Reference] or [[alias | Reference] | _], otherwise nil
}

// readFrom reads {To, Tag}.
func readFrom(r *etf.Reader) (f From) {
	r.Tuple()
	f.To = readTo(r)
	f.Tag = r.Raw()
	tag := etf.NewReader(f.Tag)
	n := tag.ListHeader()
	if tag.Peek() == etf.ListExt {
		n = tag.ListHeader()
	}
	if n == 1 && string(tag.Atom()) == "alias" {
		f.Alias = tag.Ref()
	}
	return f
}

// readTo reads a term to which Erlang can send a message from another node.
func readTo(r *etf.Reader) []byte {
	switch tag := r.Peek(); {
	case tag.IsPid():
		return r.Raw()
	case tag.IsRef():
		return r.Ref()
	}
	if name := *r; name.Tuple() == 2 {
		name.Atom()
		name.Atom()
		if name.Err() == nil {
			return r.Raw()
		}
	}
	return r.Pid() // fails
}

// MaxLocal bounds the size of an answer to Server.Call.
const MaxLocal = 64 << 10

// Call is like gen_server:call, for callers that are not peers, such as a prompt. It reports whether the
// server has replied.
func (s *Server) Call(request etf.Term) (reply etf.Term, ok bool) {
	b, err := etf.Append(nil, request, etf.AllCaps)
	if err != nil {
		return nil, false
	}
	var c local
	s.Handler.HandleCall(Call{&c, From{To: []byte(s.Pid), Tag: etf.AppendNil(nil)}, b})
	answer, _ := etf.Decode(c.answer)
	t, ok := answer.(etf.Tuple)
	if !ok {
		return nil, false
	}
	return t[1], true
}

// local is the Caller of Server.Call.
type local struct{ answer []byte }

func (*local) Caps() etf.Caps              { return etf.AllCaps }
func (*local) Context() context.Context    { return context.Background() }
func (*local) Count(int)                   {}
func (*local) Grow(size int) bool          { return size <= MaxLocal }
func (*local) Buffer() []byte              { return nil }
func (c *local) Send(_, _, message []byte) { c.answer = message }
func (c *local) Later(f func(Caller))      { f(c) }
