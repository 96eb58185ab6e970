// Package rpc lets other nodes call functions of this node in all of Erlang's ways:
// spawn requests (erpc, and rpc of OTP 23 and later), and calls and messages to the
// server rex (older nodes, C nodes, erl_call). Nodes before OTP 23 spawn through
// net_kernel.
//
// Start at [Table], which holds the functions. For other functions the caller gets
// undef, as for a module that is not loaded.
package rpc

import (
	"cmp"
	"fmt"
	"slices"

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

// Function is a function of a Table. It must be safe for concurrent use. The number of
// arguments is its arity. An error that is not an *Exception raises an exception of
// class error with the error's text.
type Function func(args []etf.Term) (etf.Term, error)

// Table holds functions by name. It must not change while functions are called.
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

// BadArgument returns the exception for arguments that a function does not accept.
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

// raised adds the stack of an error, which is only the call.
func raised(module, function etf.Atom, args []etf.Term, e *Exception) *Exception {
	if e.Class != Error || e.Stack != nil {
		return e
	}
	frame := etf.Tuple{module, function, etf.List(args), etf.List{}}
	return &Exception{Class: Error, Reason: e.Reason, Stack: etf.List{frame}}
}

// Merge returns a table of the functions of all tables. A later table replaces functions of an earlier one.
func Merge(tables ...Table) Table {
	all := make(Table)
	for _, t := range tables {
		for mfa, f := range t {
			all[mfa] = f
		}
	}
	return all
}

// WithModuleInfo adds module_info/0 and module_info/1 to each module of the table, and
// returns the table. A module exports its functions in the table.
func (t Table) WithModuleInfo() Table {
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
		info := []etf.Pair{
			{Key: etf.Atom("module"), Value: module},
			{Key: etf.Atom("exports"), Value: functions},
			{Key: etf.Atom("attributes"), Value: etf.List{}},
			{Key: etf.Atom("compile"), Value: etf.List{}},
			{Key: etf.Atom("functions"), Value: functions}, // these two are not in module_info/0
			{Key: etf.Atom("nifs"), Value: etf.List{}},
		}
		t[MFA{module, "module_info", 0}] = func([]etf.Term) (etf.Term, error) {
			var list etf.List
			for _, item := range info[:4] {
				list = append(list, etf.Tuple{item.Key, item.Value})
			}
			return list, nil
		}
		t[MFA{module, "module_info", 1}] = func(args []etf.Term) (etf.Term, error) {
			for _, item := range info {
				if args[0] == item.Key {
					return item.Value, nil
				}
			}
			return nil, BadArgument()
		}
	}
	return t
}
