package rpc

import (
	"strings"

	"github.com/flake-go/flake/node/etf"
)

// Run is the life of a process that another node has spawned here with this function
// and arguments. It returns the process's exit reason.
//
// erpc spawns one of its own functions, which calls the wanted one and exits with the
// outcome as the reason, marked with the caller's reference: {Ref, return, Result},
// {Ref, throw | exit, Reason}, {Ref, error, Reason, Stack}.
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

// Refuse returns the word in which a function is refused before it is spawned, or "".
// As with OTP, a function that does not exist is spawned and exits with undef. But
// whoever spawns the relay of dbg, for dbg:n, waits for its message for ever. OTP 23
// spawns it as a fun.
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
