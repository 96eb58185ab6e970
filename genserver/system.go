package genserver

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// Stater is a Handler whose state sys:get_state and sys:get_status show.
type Stater interface {
	State() etf.Term
}

// receiveSystem answers a system message, which module sys sends. A server that
// answers in line cannot be suspended, traced or replaced.
func (s *Server) receiveSystem(r *etf.Reader, c Caller) error {
	var from From
	from.read(r)
	request := r.Raw()
	if err := r.Finish(); err != nil {
		return fmt.Errorf("system message: %w", err)
	}
	reply, err := s.system(request, &from)
	if err != nil {
		return fmt.Errorf("system message: %w", err)
	}
	b, err := etf.Append(from.Begin(c.Buffer()), reply, c.Caps())
	if err != nil {
		return fmt.Errorf("system message: %w", err)
	}
	c.Answer(from.Pid, from.Alias, b)
	return nil
}

func (s *Server) system(request []byte, from *From) (etf.Term, error) {
	r := etf.NewReader(request)
	word := string(r.Atom())
	switch {
	case r.Finish() != nil:
	case word == "get_state":
		if from.wantsOK() {
			return etf.Tuple{etf.Atom("ok"), s.state()}, nil
		}
		return s.state(), nil
	case word == "get_status":
		return s.status(), nil
	}
	term, err := etf.Decode(request)
	unknown := etf.Tuple{etf.Atom("unknown_system_msg"), term}
	return etf.Tuple{etf.Atom("error"), unknown}, err
}

// wantsOK reports whether the caller's sys:get_state expects {ok, State} and
// fails on the State alone, as it does from OTP 26.1 on; up to 26.0 it is the
// other way round. Nothing says what release a caller is of, but from OTP 26 on
// the references of aliases have five words.
func (f *From) wantsOK() bool {
	const pidReference = 5
	return len(etf.Ref(f.Alias).Words()) == pidReference
}

func (s *Server) state() etf.Term {
	if h, ok := s.Handler.(Stater); ok {
		return h.State()
	}
	return etf.List{}
}

// status is what gen_server:format_status/2 of OTP 23 to 29 gives:
//
//	{status, Pid, {module, gen_server}, [PDict, SysState, Parent, Debug, Misc]}
func (s *Server) status() etf.Term {
	dictionary := etf.List{
		pair("$initial_call", etf.Tuple{s.Module, etf.Atom("init"), int64(1)}),
		pair("$ancestors", etf.List{s.Family}),
	}
	running := etf.Atom("running")
	misc := etf.List{
		pair("header", etf.String("Status for generic server "+s.Name)),
		pair("data", etf.List{
			etf.Tuple{etf.String("Status"), running},
			etf.Tuple{etf.String("Parent"), s.Parent},
			etf.Tuple{etf.String("Logged events"), etf.List{}},
		}),
		pair("data", etf.List{etf.Tuple{etf.String("State"), s.state()}}),
	}
	return etf.Tuple{
		etf.Atom("status"), s.Pid, etf.Tuple{etf.Atom("module"), etf.Atom("gen_server")},
		etf.List{dictionary, running, s.Parent, etf.List{}, misc},
	}
}

func pair(name etf.Atom, value etf.Term) etf.Term { return etf.Tuple{name, value} }
