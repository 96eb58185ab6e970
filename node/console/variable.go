package console

import (
	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// unbound returns an error for the first variable without a value when its turn comes.
func (e *evaluator) unbound(exprs []erltext.Expr) error {
	bound := map[string]bool{}
	for name := range e.bindings {
		bound[name] = true
	}
	for _, expr := range exprs {
		if err := e.unboundIn(expr, bound); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluator) unboundIn(expr erltext.Expr, bound map[string]bool) error {
	switch x := expr.(type) {
	case *erltext.Variable:
		if !bound[x.Name] {
			return x.Errorf("variable '%s' is unbound", x.Name)
		}
	case *erltext.Match:
		if err := e.unboundIn(x.Value, bound); err != nil {
			return err
		}
		variables(x.Pattern, bound)
	case *erltext.Call:
		if x.Module == "" && x.Function == "f" && len(x.Args) == 1 {
			return nil
		}
	}
	for _, part := range parts(expr) {
		if err := e.unboundIn(part, bound); err != nil {
			return err
		}
	}
	return nil
}

// parts returns the parts of an expression, but not those of a match.
func parts(expr erltext.Expr) []erltext.Expr {
	switch x := expr.(type) {
	case *erltext.Call:
		return x.Args
	case *erltext.Compound:
		return x.Parts
	}
	return nil
}

// variables adds the variables of a pattern.
func variables(pattern erltext.Expr, names map[string]bool) {
	switch x := pattern.(type) {
	case *erltext.Variable:
		if x.Name != "_" {
			names[x.Name] = true
		}
	case *erltext.Match:
		variables(x.Pattern, names)
		variables(x.Value, names)
	}
	for _, part := range parts(pattern) {
		variables(part, names)
	}
}

// match binds the variables of a pattern to parts of a value, or reports that they differ.
func (e *evaluator) match(pattern erltext.Expr, value etf.Term) bool {
	switch x := pattern.(type) {
	case *erltext.Literal:
		return erltext.Compare(x.Term, value) == 0
	case *erltext.Variable:
		if x.Name == "_" {
			return true
		}
		if bound, ok := e.bindings[x.Name]; ok {
			return erltext.Compare(bound, value) == 0
		}
		e.bindings[x.Name] = value
		return true
	case *erltext.Match:
		return e.match(x.Pattern, value) && e.match(x.Value, value)
	case *erltext.Compound:
		if x.Kind == erltext.Tuple {
			tuple, ok := value.(etf.Tuple)
			return ok && len(tuple) == len(x.Parts) && e.matchAll(x.Parts, tuple)
		}
		last := len(x.Parts) - 1
		elements, tail, ok := erltext.Split(value, last)
		return ok && e.matchAll(x.Parts[:last], elements) && e.match(x.Parts[last], tail)
	}
	return false
}

func (e *evaluator) matchAll(patterns []erltext.Expr, values []etf.Term) bool {
	for i, pattern := range patterns {
		if !e.match(pattern, values[i]) {
			return false
		}
	}
	return true
}
