// Package rpc lets other nodes call functions of this one, by every road that
// Erlang has: spawn requests (erpc, and rpc of OTP 23 and later), calls and
// messages to the server rex (older nodes, C nodes, erl_call). Nodes before OTP 23
// spawn by way of net_kernel.
//
// Start at [Table], which holds the functions. What is not in it does not exist
// here: the caller gets undef, as for a module that is not loaded.
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

// Function is a function of a Table. It is called by many goroutines at once,
// with as many arguments as its arity. An error that is no *Exception is raised
// as an exception of class error with its text.
type Function func(args []etf.Term) (etf.Term, error)

// Table holds functions by name. It is not changed once it serves.
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

// BadArgument is the exception for arguments that a function does not take.
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

// raised gives an error the stack that it has in Erlang, the call alone.
func raised(module, function etf.Atom, args []etf.Term, e *Exception) *Exception {
	if e.Class != Error || e.Stack != nil {
		return e
	}
	frame := etf.Tuple{module, function, etf.List(args), etf.List{}}
	return &Exception{Class: Error, Reason: e.Reason, Stack: etf.List{frame}}
}

// Merge returns a table of all the functions of some; of one name the last holds.
func Merge(tables ...Table) Table {
	all := make(Table)
	for _, t := range tables {
		for mfa, f := range t {
			all[mfa] = f
		}
	}
	return all
}
