package erltext

import (
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// Expr is an expression as Parse reads it, one of *Literal, *Variable, *Match, *Call and *Compound.
type Expr any

// Literal is a term.
type Literal struct{ Term etf.Term }

// Variable is a variable, including _.
type Variable struct {
	Name string
	Position
}

// Match is Pattern = Value. There are no calls in a pattern.
type Match struct{ Pattern, Value Expr }

// Call is a call of a function. Without a module, Module is empty.
type Call struct {
	Module, Function etf.Atom
	Args             []Expr
	Position
}

// Compound is a tuple, list or map with expressions in it that are not literals. Parts are its elements, of a list
// its tail too, and of a map each key before its value.
type Compound struct {
	Kind
	Parts []Expr
}

// Kind says what a Compound is.
type Kind uint8

const (
	Tuple Kind = iota
	List
	Map
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
		pairs[i] = etf.Pair{Key: parts[2*i], Value: parts[2*i+1]}
	}
	return newMap(pairs)
}

// compound returns the expression with the given parts, a literal if they are.
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

// isPattern reports whether an expression may stand before a =.
func isPattern(e Expr) bool {
	switch e := e.(type) {
	case *Literal, *Variable:
		return true
	case *Match:
		return isPattern(e.Value)
	case *Compound:
		return e.Kind != Map && !slices.ContainsFunc(e.Parts, func(part Expr) bool { return !isPattern(part) })
	}
	return false
}
