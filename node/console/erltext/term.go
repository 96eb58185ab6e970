package erltext

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// Equal reports whether a and b are the same term. Values that etf.Append refuses equal nothing.
func Equal(a, b etf.Term) bool {
	x, errX := etf.Append(nil, normal(a), etf.AllCaps)
	y, errY := etf.Append(nil, normal(b), etf.AllCaps)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// normal returns t in the form that all values of the same term share: its lists as etf.List or etf.ImproperList, its
// maps sorted.
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

// elementsOf returns the elements of a list and its tail. Another term is a tail without elements.
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

// newMap returns the map of pairs, sorted by the external bytes of the keys, which must be normal. A later pair
// replaces an earlier one with the same key.
func newMap(pairs []etf.Pair) etf.Map {
	type entry struct {
		key string
		etf.Pair
	}
	entries := make([]entry, len(pairs))
	for i, pair := range pairs {
		key, _ := etf.Append(nil, pair.Key, etf.AllCaps)
		entries[i] = entry{string(key), pair}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	m := etf.Map{}
	for i, e := range entries {
		if i > 0 && entries[i-1].key == e.key {
			m[len(m)-1] = e.Pair
		} else {
			m = append(m, e.Pair)
		}
	}
	return m
}

// Split returns the first n elements of a list and the list of the others.
func Split(list etf.Term, n int) (first []etf.Term, rest etf.Term, ok bool) {
	elements, tail := elementsOf(list)
	if len(elements) < n {
		return nil, nil, false
	}
	return elements[:n:n], newList(elements[n:], tail), true
}
