package genserver

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// receiveSystem answers a system message from module sys. A server runs on the goroutines of its
// callers, so it cannot be suspended or replaced. It keeps no statistics.
func (s *Server) receiveSystem(c Call) error {
	reply, end := pair("error", etf.Atom("system_limit")), (func())(nil)
	if term, err := etf.Decode(c.Request); err == nil { // otherwise the request exceeds the limits
		reply, end = s.system(term, c.From)
	}
	b, err := etf.Append(c.Begin(), reply, c.Caps())
	if err != nil {
		return fmt.Errorf("system: %w", err)
	}
	c.Reply(b)
	if end != nil {
		end() // after the answer
	}
	return nil
}

// system returns the answer to a request, and a function to call after sending it, or nil.
func (s *Server) system(request etf.Term, from From) (reply etf.Term, after func()) {
	t, _ := request.(etf.Tuple)
	switch {
	case request == etf.Atom("get_state"):
		if from.wantsOK() {
			return pair("ok", s.Handler.State()), nil
		}
		return s.Handler.State(), nil
	case request == etf.Atom("get_status"):
		return s.status(), nil
	case request == etf.Atom("resume"):
		return etf.Atom("ok"), nil
	case len(t) == 2 && t[0] == etf.Atom("debug"):
		return debug(t[1]), nil
	case len(t) == 2 && t[0] == etf.Atom("terminate") && s.End != nil:
		return etf.Atom("ok"), func() { s.End(t[1]) }
	}
	return pair("error", pair("unknown_system_msg", request)), nil
}

// debug returns OTP's answers to sys:statistics, sys:log, sys:trace etc. when nothing is collected,
// and unknown_debug for unknown requests.
func debug(request etf.Term) etf.Term {
	if request == etf.Atom("no_debug") {
		return etf.Atom("ok")
	}
	t, _ := request.(etf.Tuple)
	if len(t) != 2 {
		return etf.Atom("unknown_debug")
	}
	name, _ := t[0].(etf.Atom)
	flag, _ := t[1].(etf.Atom)
	if on, _ := t[1].(etf.Tuple); len(on) == 2 && on[0] == etf.Atom("true") {
		flag = "{true,N}"
	}
	switch name + " " + flag {
	case "statistics true", "statistics false", "log true", "log {true,N}", "log false", "log print",
		"trace true", "trace false", "log_to_file false":
		return etf.Atom("ok")
	case "statistics get":
		return pair("ok", etf.Atom("no_statistics"))
	case "log get":
		return pair("ok", etf.List{})
	}
	switch name {
	case "log_to_file":
		return pair("error", etf.Atom("open_file"))
	case "remove":
		return etf.Atom("ok")
	}
	return etf.Atom("unknown_debug")
}

// wantsOK reports whether the caller's sys:get_state expects {ok, State}, as it has since OTP 26.1,
// instead of State. The caller's release is unknown, but alias references have had five words only
// since OTP 26.
func (f From) wantsOK() bool {
	const pidReference = 5
	return len(etf.Ref(f.Alias).Words()) == pidReference
}

// status returns what gen_server:format_status/2 returns in OTP 23 to 29:
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
		pair("data", etf.List{etf.Tuple{etf.String("State"), s.Handler.State()}}),
	}
	return etf.Tuple{
		etf.Atom("status"), s.Pid, etf.Tuple{etf.Atom("module"), etf.Atom("gen_server")},
		etf.List{dictionary, running, s.Parent, etf.List{}, misc},
	}
}

func pair(name etf.Atom, value etf.Term) etf.Term { return etf.Tuple{name, value} }
