// Package rpc lets other nodes call functions on this node in all the ways that Erlang has:
// spawn requests (erpc, and rpc of OTP 23 and later), and calls and messages to the server rex
// (older nodes, C nodes, erl_call). Nodes before OTP 23 spawn through net_kernel.
//
// Start at [Table], which holds the functions. For other functions the caller gets
// undef, as for a module that is not loaded.
package rpc

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/flake-go/flake/node/etf"
)

// MFA names a function.
type MFA struct {
	Module, Function etf.Atom
	Arity            int
}

// Function is a function of a Table. It must be safe for concurrent use. The number of arguments is
// the Arity of its key in the Table. An error other than an *Exception raises an exception of class
// error with the error's text.
type Function func(args []etf.Term) (etf.Term, error)

// Table holds functions by name. It must not change while functions are called.
type Table map[MFA]Function

// Exception is an exception that a function raised instead of returning.
type Exception struct {
	Class  Class
	Reason etf.Term
	Stack  etf.List // set only for class Error
}

// Class is the class of an exception.
type Class string

const (
	Error Class = "error"
	Exit  Class = "exit"
	Throw Class = "throw"
)

func (e *Exception) Error() string {
	return fmt.Sprintf("exception %s: %s", e.Class, etf.Format(nil, e.Reason))
}

// BadArgument returns the exception for arguments that a function does not accept.
func BadArgument() *Exception { return &Exception{Class: Error, Reason: etf.Atom("badarg")} }

// Apply calls a function.
func (t Table) Apply(module, function etf.Atom, args []etf.Term) (etf.Term, *Exception) {
	var result etf.Term
	err := error(&Exception{Class: Error, Reason: etf.Atom("undef")})
	if call := t[MFA{module, function, len(args)}]; call != nil {
		result, err = call(args)
	}
	if err == nil {
		return result, nil
	}
	e, ok := err.(*Exception)
	if !ok {
		e = &Exception{Class: Error, Reason: etf.String(err.Error())}
	}
	if e.Class == Error && e.Stack == nil { // the stack then holds only the call
		frame := etf.Tuple{module, function, etf.List(args), etf.List{}}
		e = &Exception{Class: Error, Reason: e.Reason, Stack: etf.List{frame}}
	}
	return nil, e
}

// AddModuleInfo adds code:ensure_loaded/1 and erlang:function_exported/3, which tools such as erl -remsh
// call first, and then module_info/0 and module_info/1 to each module of the table. A module's
// exports are its functions in the table.
func (t Table) AddModuleInfo() {
	t[MFA{"code", "ensure_loaded", 1}] = t.ensureLoaded
	t[MFA{"erlang", "function_exported", 3}] = t.functionExported
	exports := map[etf.Atom][]MFA{}
	for mfa := range t {
		exports[mfa.Module] = append(exports[mfa.Module], mfa)
	}
	for module, all := range exports {
		all = append(all, MFA{module, "module_info", 0}, MFA{module, "module_info", 1})
		slices.SortFunc(all, func(a, b MFA) int {
			return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Arity, b.Arity))
		})
		var functions etf.List
		for _, mfa := range all {
			functions = append(functions, etf.Tuple{mfa.Function, int64(mfa.Arity)})
		}
		info := etf.List{
			etf.Tuple{etf.Atom("module"), module},
			etf.Tuple{etf.Atom("exports"), functions},
			etf.Tuple{etf.Atom("attributes"), etf.List{}},
			etf.Tuple{etf.Atom("compile"), etf.List{}},
			etf.Tuple{etf.Atom("functions"), functions}, // these two are not in module_info/0
			etf.Tuple{etf.Atom("nifs"), etf.List{}},
		}
		t[MFA{module, "module_info", 0}] = func([]etf.Term) (etf.Term, error) { return info[:4], nil }
		t[MFA{module, "module_info", 1}] = func(args []etf.Term) (etf.Term, error) { return Value(info, args[0]) }
	}
}

// ensureLoaded answers {error, nofile} for a module that is not in the table. For the caller, that is
// a node without the module.
func (t Table) ensureLoaded(args []etf.Term) (etf.Term, error) {
	module, ok := args[0].(etf.Atom)
	if !ok {
		return nil, BadArgument()
	}
	if t[MFA{module, "module_info", 0}] == nil {
		return etf.Tuple{etf.Atom("error"), etf.Atom("nofile")}, nil
	}
	return etf.Tuple{etf.Atom("module"), module}, nil
}

func (t Table) functionExported(args []etf.Term) (etf.Term, error) {
	module, ok1 := args[0].(etf.Atom)
	function, ok2 := args[1].(etf.Atom)
	arity, ok3 := args[2].(int64)
	if !ok1 || !ok2 || !ok3 || arity < 0 {
		return nil, BadArgument()
	}
	return etf.Atom(strconv.FormatBool(t[MFA{module, function, int(arity)}] != nil)), nil
}

// Value returns the value of key in a list of {Key, Value} whose keys are atoms. Any other key is a bad
// argument.
func Value(list etf.List, key etf.Term) (etf.Term, error) {
	for _, item := range list {
		if pair := item.(etf.Tuple); pair[0] == key {
			return pair[1], nil
		}
	}
	return nil, BadArgument()
}

// Run runs the function of a process that another node spawned and returns the process's exit
// reason.
//
// erpc spawns one of its own functions, which calls the function named in its arguments. The exit
// reason is the outcome: {Ref, return, Result}, {Ref, throw | exit, Reason} or
// {Ref, error, Reason, Stack}. Ref is the reference that the caller sent.
func (t Table) Run(module, function etf.Atom, args []etf.Term) (reason etf.Term) {
	if module == "erpc" {
		switch {
		case function == "execute_call" && len(args) == 4:
			return t.executeCall(args[0], args[1:])
		case function == "execute_cast" && len(args) == 3:
			t.Execute(args)
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
	result, e := t.Execute(call)
	switch {
	case e == nil:
		return etf.Tuple{ref, etf.Atom("return"), result}
	case e.Class == Error:
		return etf.Tuple{ref, etf.Atom(e.Class), e.Reason, e.Stack}
	}
	return etf.Tuple{ref, etf.Atom(e.Class), e.Reason}
}

// Execute applies [Module, Function, Arguments].
func (t Table) Execute(call []etf.Term) (etf.Term, *Exception) {
	module, ok1 := call[0].(etf.Atom)
	function, ok2 := call[1].(etf.Atom)
	args, ok3 := etf.Elements(call[2])
	if !ok1 || !ok2 || !ok3 {
		return nil, BadArgument()
	}
	return t.Apply(module, function, args)
}

// Refuse returns why a spawn is refused, or "". As in OTP, a spawn of a function that does not
// exist succeeds, and the process exits with undef. Only the relay of dbg is refused, because its
// caller, dbg:n, would wait forever for the relay's message. OTP 23 spawns the relay as a fun.
func Refuse(module, function etf.Atom, args []etf.Term) etf.Atom {
	isRelay := module == "dbg" && function == "do_relay"
	if module == "erlang" && function == "apply" && len(args) == 2 {
		fun, ok := args[0].(etf.Fun)
		isRelay = ok && bytes.HasPrefix(etf.Format(nil, fun), []byte("#Fun<dbg."))
	}
	if isRelay {
		return "undef"
	}
	return ""
}
