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

	// End, unless nil, ends this life with the reason that a sys:terminate gave. The
	// Parent then starts the next.
	End func(reason etf.Term)
}

// Receive handles one message to the server and answers it if it is a call. An error
// means that the message looked like a call or a cast but was malformed; like OTP,
// it does not answer that.
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

// From identifies the caller, as the bytes received.
type From struct {
	Pid   []byte
	Tag   []byte
	Alias []byte // the reference if the Tag is [alias | Reference], else nil
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

// begin begins the answer {Tag, Reply}; the caller appends one term, the Reply.
func (f From) begin(dst []byte) []byte { return append(etf.AppendTupleHeader(dst, 2), f.Tag...) }

// around puts the Tag before a reply that is built later.
func (f From) around(build Build) Build {
	f.Tag = bytes.Clone(f.Tag)
	return func(dst []byte, room bool) []byte { return build(f.begin(dst), room) }
}
