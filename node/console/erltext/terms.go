package erltext

import (
	"bytes"
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/flake-go/flake/node/etf"
)

// Compare returns how a and b are ordered as keys of a map: as Erlang's terms, but all integers before all
// floats. It is 0 if the terms match. Pids, ports and references are ordered by their bytes.
func Compare(a, b etf.Term) int {
	kind := rank(a)
	if c := cmp.Compare(kind, rank(b)); c != 0 {
		return c
	}
	switch kind {
	case integerRank:
		return bigOf(a).Cmp(bigOf(b))
	case floatRank:
		return cmp.Compare(a.(float64), b.(float64))
	case atomRank:
		return cmp.Compare(a.(etf.Atom), b.(etf.Atom))
	case tupleRank:
		a, b := a.(etf.Tuple), b.(etf.Tuple)
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
		return slices.CompareFunc(a, b, Compare)
	case mapRank:
		return compareMaps(newMap(a.(etf.Map)), newMap(b.(etf.Map)))
	case listRank:
		return compareLists(a, b)
	case bitsRank:
		a, b := bitsOf(a), bitsOf(b)
		if c := bytes.Compare(a.Bytes, b.Bytes); c != 0 || len(a.Bytes) == 0 {
			return c
		}
		return cmp.Compare(a.Bits, b.Bits)
	case identifierRank:
		return strings.Compare(externalOf(a), externalOf(b))
	}
	return 0
}

// The kinds of terms in their order.
const (
	integerRank = iota
	floatRank
	atomRank
	identifierRank
	tupleRank
	mapRank
	nilRank
	listRank
	bitsRank
)

func rank(t etf.Term) int {
	switch t := t.(type) {
	case int64, *big.Int:
		return integerRank
	case float64:
		return floatRank
	case etf.Atom:
		return atomRank
	case etf.Tuple:
		return tupleRank
	case etf.Map:
		return mapRank
	case etf.List:
		if len(t) == 0 {
			return nilRank
		}
		return listRank
	case etf.String:
		if len(t) == 0 {
			return nilRank
		}
		return listRank
	case etf.ImproperList:
		return listRank
	case []byte, etf.Bitstring:
		return bitsRank
	}
	return identifierRank
}

func bigOf(t etf.Term) *big.Int {
	if n, ok := t.(int64); ok {
		return big.NewInt(n)
	}
	return t.(*big.Int)
}

func bitsOf(t etf.Term) etf.Bitstring {
	if b, ok := t.([]byte); ok {
		return etf.Bitstring{Bytes: b, Bits: 8}
	}
	return t.(etf.Bitstring)
}

// externalOf returns the kind and the bytes of a pid, port, reference or fun.
func externalOf(t etf.Term) string {
	switch t := t.(type) {
	case etf.Ref:
		return "1" + string(t)
	case etf.Fun:
		return "2" + string(t)
	case etf.Export:
		return "3" + string(t)
	case etf.Port:
		return "4" + string(t)
	case etf.Pid:
		return "5" + string(t)
	}
	return ""
}

func compareLists(a, b etf.Term) int {
	as, aTail := elementsOf(a)
	bs, bTail := elementsOf(b)
	n := min(len(as), len(bs))
	if c := slices.CompareFunc(as[:n], bs[:n], Compare); c != 0 {
		return c
	}
	switch {
	case len(as) > n:
		return cmp.Compare(listRank, rank(bTail))
	case len(bs) > n:
		return cmp.Compare(rank(aTail), listRank)
	}
	return Compare(aTail, bTail)
}

// elementsOf returns the elements of a list and its tail.
func elementsOf(t etf.Term) (elements []etf.Term, tail etf.Term) {
	if elements, ok := etf.Elements(t); ok {
		return elements, etf.List(nil)
	}
	if t, ok := t.(etf.ImproperList); ok {
		return t.Elements, t.Tail
	}
	return nil, t
}

func compareMaps(a, b etf.Map) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	key := func(a, b etf.Pair) int { return Compare(a.Key, b.Key) }
	value := func(a, b etf.Pair) int { return Compare(a.Value, b.Value) }
	if c := slices.CompareFunc(a, b, key); c != 0 {
		return c
	}
	return slices.CompareFunc(a, b, value)
}

// newList returns the list of the elements before a tail, which may be a list itself.
func newList(elements []etf.Term, tail etf.Term) etf.Term {
	behind, end := elementsOf(tail)
	elements = slices.Concat(elements, behind)
	switch {
	case rank(end) == nilRank:
		return etf.List(elements)
	case len(elements) == 0:
		return end
	}
	return etf.ImproperList{Elements: elements, Tail: end}
}

// newMap returns the map of the pairs in the order of Compare. Later pairs replace earlier ones.
func newMap(pairs []etf.Pair) etf.Map {
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b etf.Pair) int { return Compare(a.Key, b.Key) })
	m := etf.Map{}
	for _, pair := range sorted {
		if last := len(m) - 1; last >= 0 && Compare(m[last].Key, pair.Key) == 0 {
			m[last] = pair
		} else {
			m = append(m, pair)
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
