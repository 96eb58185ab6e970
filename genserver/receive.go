package genserver

import (
	"bytes"
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

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
	s.Handler.HandleCall(Call{c, from, request})
	return nil
}

// From says who called, as the bytes that came.
type From struct {
	Pid   []byte
	Tag   []byte
	Alias []byte // the reference of a Tag [alias | Reference], else nil
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

// begin begins the answer {Tag, Reply}: one term, the Reply, is to be appended.
func (f From) begin(dst []byte) []byte { return append(etf.AppendTupleHeader(dst, 2), f.Tag...) }

// around has a reply that is built later begin with the Tag.
func (f From) around(build Build) Build {
	f.Tag = bytes.Clone(f.Tag)
	return func(dst []byte, room bool) []byte { return build(f.begin(dst), room) }
}
