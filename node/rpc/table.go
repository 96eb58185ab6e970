// Package rpc lets other nodes call functions of this one in every way that Erlang
// has: spawn requests (erpc, and rpc of OTP 23 and later), calls and messages to the
// server rex (older nodes, C nodes, erl_call). Nodes before OTP 23 spawn through
// net_kernel.
//
// Start at [Table], which holds the functions. What is not in it does not exist here:
// the caller gets undef, as for a module that is not loaded.
package rpc

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
)

// MFA names a function.
type MFA struct {
	Module, Function etf.Atom
	Arity            int
}

func (m MFA) String() string {
	b := etf.Format(nil, m.Module)
	b = etf.Format(append(b, ':'), m.Function)
	return fmt.Sprintf("%s/%d", b, m.Arity)
}

// Function is a function of a Table. Many goroutines call it at once, with as many
// arguments as its arity. An error other than an *Exception raises an exception of
// class error with its text.
type Function func(args []etf.Term) (etf.Term, error)

// Table holds functions by name. It must not change while it serves.
type Table map[MFA]Function

// Exception is what a function raises instead of returning.
type Exception struct {
	Class  Class
	Reason etf.Term
	Stack  etf.List // of class Error only
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

// BadArgument is the exception for unacceptable arguments.
func BadArgument() *Exception { return &Exception{Class: Error, Reason: etf.Atom("badarg")} }

// Apply calls a function.
func (t Table) Apply(module, function etf.Atom, args []etf.Term) (etf.Term, *Exception) {
	call := t[MFA{module, function, len(args)}]
	if call == nil {
		return nil, raised(module, function, args, &Exception{Class: Error, Reason: etf.Atom("undef")})
	}
	result, err := call(args)
	if err == nil {
		return result, nil
	}
	e, ok := err.(*Exception)
	if !ok {
		e = &Exception{Class: Error, Reason: etf.String(err.Error())}
	}
	return nil, raised(module, function, args, e)
}

// raised gives an error the stack that it has in Erlang, only the call.
func raised(module, function etf.Atom, args []etf.Term, e *Exception) *Exception {
	if e.Class != Error || e.Stack != nil {
		return e
	}
	frame := etf.Tuple{module, function, etf.List(args), etf.List{}}
	return &Exception{Class: Error, Reason: e.Reason, Stack: etf.List{frame}}
}

// Merge returns a table of all functions of tables; for one name the last counts.
func Merge(tables ...Table) Table {
	all := make(Table)
	for _, t := range tables {
		for mfa, f := range t {
			all[mfa] = f
		}
	}
	return all
}
