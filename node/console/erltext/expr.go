// Package erltext reads and prints Erlang terms as text, as the Erlang shell does:
// https://www.erlang.org/doc/man/shell.html
//
// [Parse] reads expressions and [Pretty] prints a value. [Kind.Term], [Segment], [Equal] and [Split] help to
// evaluate expressions. The text of logs is that of etf.FormatRaw.
package erltext

import (
	"fmt"
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// Position is a place in a text. Line and Column count from 1, columns in characters.
type Position struct{ Line, Column int }

// Errorf returns an error at the position.
func (p Position) Errorf(format string, args ...any) *Error {
	return &Error{p, fmt.Sprintf(format, args...)}
}

// Error is an error in a text.
type Error struct {
	Position
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// Expr is an expression, one of *Literal, *Variable, *Match, *Call, *Compound and *Binary.
type Expr any

// Literal is a term.
type Literal struct{ Term etf.Term }

// Variable is a variable, including _.
type Variable struct {
	Name string
	Position
}

// Match is Pattern = Value. A pattern contains no calls and no maps with variables.
type Match struct{ Pattern, Value Expr }

// Call is a call of a function. Module is empty if none is given.
type Call struct {
	Module, Function etf.Atom
	Args             []Expr
}

// Compound is a tuple, list or map that is not a literal. Parts are the elements, for a list followed by its
// tail, and for a map each key followed by its value.
type Compound struct {
	Kind
	Parts []Expr
}

// Binary is a binary that is not a literal.
type Binary struct{ Segments []Segment }

// Kind is the kind of a Compound.
type Kind uint8

const (
	Tuple Kind = 0
	List  Kind = 1
	Map   Kind = 2
)

// Term returns the term whose parts have the given values.
func (k Kind) Term(parts []etf.Term) etf.Term {
	switch k {
	case Tuple:
		return etf.Tuple(parts)
	case List:
		last := len(parts) - 1
		return newList(parts[:last], parts[last])
	}
	pairs := make([]etf.Pair, len(parts)/2)
	for i := range pairs {
		pairs[i] = etf.Pair{Key: normal(parts[2*i]), Value: parts[2*i+1]}
	}
	return newMap(pairs)
}

// compound returns the expression with the given parts, a literal if all of them are.
func compound(kind Kind, parts []Expr) Expr {
	terms := make([]etf.Term, len(parts))
	for i, part := range parts {
		literal, ok := part.(*Literal)
		if !ok {
			return &Compound{kind, parts}
		}
		terms[i] = literal.Term
	}
	return &Literal{kind.Term(terms)}
}

// isPattern reports whether e can be on the left of a =.
func isPattern(e Expr) bool {
	switch e := e.(type) {
	case *Literal, *Variable:
		return true
	case *Match:
		return isPattern(e.Value)
	case *Compound:
		return e.Kind != Map && !slices.ContainsFunc(e.Parts, func(part Expr) bool { return !isPattern(part) })
	case *Binary:
		return !slices.ContainsFunc(e.Segments, func(s Segment) bool { return !isPattern(s.Value) })
	}
	return false
}
