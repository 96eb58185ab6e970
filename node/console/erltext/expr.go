// Package erltext reads Erlang terms as text, as the Erlang shell does:
// https://www.erlang.org/doc/man/shell.html
//
// [Parse] reads expressions. [Compound] and [Equal] help to evaluate them. Package etf prints terms.
package erltext

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// Position is a place in Erlang text. Line and Column count from 1, columns in characters.
type Position struct{ Line, Column int }

// Errorf returns an error at the position.
func (p Position) Errorf(format string, args ...any) *Error {
	return &Error{Position: p, Reason: fmt.Sprintf(format, args...)}
}

// Error is an error in Erlang text.
type Error struct {
	Position
	Reason     string
	Incomplete bool // the text has no full stop yet
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// Expr is an expression, one of *Literal, *Variable, *Match, *Call and *Compound.
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

// Call is a call to a function. Module is empty if none is given.
type Call struct {
	Module, Function etf.Atom
	Args             []Expr
}

// Compound is a tuple, list, map or binary that is not a literal. Parts holds the elements. In a
// list, the tail is the last part; in a map, each key is followed by its value.
type Compound struct {
	Parts    []Expr
	kind     kind
	segments []segment // for a binary, one for each part
}

type kind uint8

const (
	aTuple  kind = 0
	aList   kind = 1
	aMap    kind = 2
	aBinary kind = 3
)

// Term returns the term that c describes. It calls value for each part, in order, to get the
// part's value. It fails if value fails, or if a value cannot be part of a binary.
func (c *Compound) Term(value func(part Expr) (etf.Term, error)) (etf.Term, error) {
	var b bitString
	values := make([]etf.Term, len(c.Parts))
	for i, part := range c.Parts {
		var err error
		if values[i], err = value(part); err == nil && c.kind == aBinary {
			b, err = c.segments[i].append(b, values[i])
		}
		if err != nil {
			return nil, err
		}
	}
	switch c.kind {
	case aTuple:
		return etf.Tuple(values), nil
	case aList:
		last := len(values) - 1
		return newList(values[:last], values[last]), nil
	case aBinary:
		return b.term(), nil
	}
	pairs := make([]etf.Pair, len(values)/2)
	for i := range pairs {
		pairs[i] = etf.Pair{Key: normal(values[2*i]), Value: values[2*i+1]}
	}
	return newMap(pairs), nil
}

// Values is the reverse of Term: it returns the values of the parts of t, and reports whether t has
// the form of c. In binaries, it also compares the parts that are literals. It does not support
// maps.
func (c *Compound) Values(t etf.Term) (values []etf.Term, ok bool) {
	switch c.kind {
	case aTuple:
		tuple, _ := t.(etf.Tuple)
		return tuple, len(tuple) == len(c.Parts) // c has parts: {} is a literal
	case aList:
		n := len(c.Parts) - 1
		elements, tail := elementsOf(t)
		if len(elements) < n {
			return nil, false
		}
		return append(elements[:n:n], newList(elements[n:], tail)), true
	case aBinary:
		b, ok := bitsOf(t)
		for i, s := range c.segments {
			var value etf.Term
			if literal, isLiteral := c.Parts[i].(*Literal); isLiteral && ok {
				want, err := s.append(nil, literal.Term)
				value, ok = literal.Term, err == nil && bytes.HasPrefix(b, want)
				b = bytes.TrimPrefix(b, want)
			} else if ok {
				value, b, ok = s.cut(b)
			}
			values = append(values, value)
		}
		return values, ok && len(b) == 0
	}
	return nil, false
}

// isPattern reports whether e can be on the left of =.
func isPattern(e Expr) bool {
	switch e := e.(type) {
	case *Literal, *Variable:
		return true
	case *Match:
		return isPattern(e.Value)
	case *Compound:
		return e.kind != aMap && !slices.ContainsFunc(e.Parts, func(part Expr) bool { return !isPattern(part) })
	}
	return false
}

// Equal reports whether a and b are the same term. It returns false for values that etf.Append
// refuses.
func Equal(a, b etf.Term) bool {
	x := external(normal(a))
	return x != nil && bytes.Equal(x, external(normal(b)))
}

// normal returns the normal form of t: its lists are of type etf.List or etf.ImproperList, and its maps are sorted.
func normal(t etf.Term) etf.Term {
	switch t := t.(type) {
	case etf.List, etf.String, etf.ImproperList:
		elements, tail := elementsOf(t)
		if _, proper := tail.(etf.List); !proper {
			tail = normal(tail)
		}
		return newList(normals(elements), tail)
	case etf.Tuple:
		return etf.Tuple(normals(t))
	case etf.Map:
		pairs := make([]etf.Pair, len(t))
		for i, pair := range t {
			pairs[i] = etf.Pair{Key: normal(pair.Key), Value: normal(pair.Value)}
		}
		return newMap(pairs)
	}
	return t
}

func normals(terms []etf.Term) []etf.Term {
	all := make([]etf.Term, len(terms))
	for i, t := range terms {
		all[i] = normal(t)
	}
	return all
}

// elementsOf returns the elements of a list and its tail. Any other term is a tail without elements.
func elementsOf(t etf.Term) (elements []etf.Term, tail etf.Term) {
	if elements, ok := etf.Elements(t); ok {
		return elements, etf.List(nil)
	}
	if t, ok := t.(etf.ImproperList); ok {
		return t.Elements, t.Tail
	}
	return nil, t
}

// newList returns the list of elements followed by a tail, which may be a list.
func newList(elements []etf.Term, tail etf.Term) etf.Term {
	more, end := elementsOf(tail)
	elements = slices.Concat(elements, more)
	if _, proper := end.(etf.List); proper {
		return etf.List(elements)
	}
	if len(elements) == 0 {
		return end
	}
	return etf.ImproperList{Elements: elements, Tail: end}
}

// newMap returns the map of pairs, sorted by the external bytes of the keys. The keys must be in
// normal form. A later pair replaces an earlier one with the same key.
func newMap(pairs []etf.Pair) etf.Map {
	m := etf.Map(slices.Clone(pairs))
	slices.Reverse(m) // so that the last of equal keys comes first and is kept
	compare := func(a, b etf.Pair) int { return bytes.Compare(external(a.Key), external(b.Key)) }
	slices.SortStableFunc(m, compare)
	return slices.CompactFunc(m, func(a, b etf.Pair) bool { return compare(a, b) == 0 })
}

// external returns the external bytes of t, or nil if etf.Append refuses it.
func external(t etf.Term) []byte {
	b, _ := etf.Append(nil, t, etf.AllCaps)
	return b
}
