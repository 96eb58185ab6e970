package erltext

import "github.com/flake-go/flake/node/etf"

// Expr is an expression as Parse reads it, one of *Literal, *Variable, *Match, *Call, and, for terms that
// have one of the latter three in them, *ListExpr, *TupleExpr, *MapExpr.
type Expr any

// Literal is a term.
type Literal struct{ Term etf.Term }

// Variable is a variable, _ included.
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

// ListExpr is a list with at least one element. Without a |, Tail is the empty list.
type ListExpr struct {
	Elements []Expr
	Tail     Expr
}

// TupleExpr is a tuple.
type TupleExpr struct{ Elements []Expr }

// MapExpr is a map.
type MapExpr struct{ Keys, Values []Expr }

// literals returns the terms of expressions if they are all literals.
func literals(exprs []Expr) ([]etf.Term, bool) {
	terms := make([]etf.Term, len(exprs))
	for i, e := range exprs {
		literal, ok := e.(*Literal)
		if !ok {
			return nil, false
		}
		terms[i] = literal.Term
	}
	return terms, true
}

// isPattern says whether an expression may stand before a =.
func isPattern(e Expr) bool {
	all := func(exprs []Expr) bool {
		for _, e := range exprs {
			if !isPattern(e) {
				return false
			}
		}
		return true
	}
	switch e := e.(type) {
	case *Literal, *Variable:
		return true
	case *Match:
		return isPattern(e.Value)
	case *ListExpr:
		return all(e.Elements) && isPattern(e.Tail)
	case *TupleExpr:
		return all(e.Elements)
	}
	return false
}
