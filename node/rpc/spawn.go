package rpc

import (
	"strings"

	"github.com/flake-go/flake/node/etf"
)

// Run runs the function of a process that another node spawned, and returns the
// process's exit reason.
//
// erpc spawns one of its own functions, which calls the function in its arguments and
// exits with the outcome as the reason: {Ref, return, Result},
// {Ref, throw | exit, Reason} or {Ref, error, Reason, Stack}, with the caller's Ref.
func (t Table) Run(module, function etf.Atom, args []etf.Term) (reason etf.Term) {
	if module == "erpc" {
		switch {
		case function == "execute_call" && len(args) == 4:
			return t.executeCall(args[0], args[1:])
		case function == "execute_cast" && len(args) == 3:
			t.execute(args)
			return etf.Atom("normal")
		}
	}
	_, e := t.Apply(module, function, args)
	switch {
	case e == nil:
		return etf.Atom("normal")
	case e.Class == Exit:
		return e.Reason
	case e.Class == Throw:
		return etf.Tuple{etf.Tuple{etf.Atom("nocatch"), e.Reason}, etf.List{}}
	}
	return etf.Tuple{e.Reason, e.Stack}
}

func (t Table) executeCall(ref etf.Term, call []etf.Term) etf.Term {
	result, e := t.execute(call)
	switch {
	case e == nil:
		return etf.Tuple{ref, etf.Atom("return"), result}
	case e.Class == Error:
		return etf.Tuple{ref, etf.Atom(e.Class), e.Reason, e.Stack}
	}
	return etf.Tuple{ref, etf.Atom(e.Class), e.Reason}
}

// execute applies [Module, Function, Arguments].
func (t Table) execute(call []etf.Term) (etf.Term, *Exception) {
	module, ok1 := call[0].(etf.Atom)
	function, ok2 := call[1].(etf.Atom)
	args, ok3 := etf.Elements(call[2])
	if !ok1 || !ok2 || !ok3 {
		return nil, BadArgument()
	}
	return t.Apply(module, function, args)
}

// Refuse returns the reason for which a spawn is refused, or "". As in OTP, a function
// that does not exist is spawned and exits with undef. An exception is the relay of dbg,
// because its caller, dbg:n, would wait for its message forever. OTP 23 spawns it as a
// fun.
func Refuse(module, function etf.Atom, args []etf.Term) etf.Atom {
	isRelay := module == "dbg" && function == "do_relay"
	if module == "erlang" && function == "apply" && len(args) == 2 {
		fun, ok := args[0].(etf.Fun)
		isRelay = ok && strings.HasPrefix(fun.String(), "#Fun<dbg.")
	}
	if isRelay {
		return "undef"
	}
	return ""
}
