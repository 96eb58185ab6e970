package etf

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"
)

// Limits of Decode. Terms that exceed them are well-formed, and Reader.Raw reads them, but honest peers do not send
// such terms.
const (
	MaxDepth        = 512     // levels of nested terms, counting the outermost
	MaxElements     = 1 << 17 // elements of all lists, tuples and maps together; a pair of a map counts as 2
	MaxIntegerBytes = 1 << 13 // bytes of an integer's magnitude
)

// Decode returns the term in src, which must be one term without a version byte. The returned term does not refer to
// src. Decode refuses terms beyond MaxDepth, MaxElements or MaxIntegerBytes.
func Decode(src []byte) (Term, error) {
	d := decoder{r: NewReader(src)}
	d.r.Raw() // checks all counts before memory is allocated for them
	if err := d.r.Finish(); err != nil {
		return nil, err
	}
	d.r = NewReader(src)
	t := d.term(1)
	if err := d.r.Finish(); err != nil {
		return nil, err
	}
	return t, nil
}

// decoder decodes a term that Raw has checked.
type decoder struct {
	r        Reader
	elements int // counted so far
}

func (d *decoder) term(depth int) Term {
	r := &d.r
	if depth > MaxDepth {
		r.refuse("nested deeper than " + strconv.Itoa(MaxDepth))
		return nil
	}
	switch tag := r.Peek(); tag {
	case SmallIntegerExt, IntegerExt:
		return r.Int()
	case SmallBigExt, LargeBigExt:
		return d.integer()
	case FloatExt, NewFloatExt:
		return r.float(r.next())
	case AtomExt, SmallAtomExt, AtomUTF8Ext, SmallAtomUTF8Ext:
		return Atom(r.Atom())
	case BinaryExt:
		return bytes.Clone(r.Binary())
	case BitBinaryExt:
		return d.bitstring()
	case StringExt, ListExt, NilExt:
		return d.list(depth)
	case SmallTupleExt, LargeTupleExt:
		t := make(Tuple, d.count(r.Tuple()))
		for i := range t {
			t[i] = d.term(depth + 1)
		}
		return t
	case MapExt:
		m := make(Map, d.count(2*r.Map())/2)
		for i := range m {
			m[i].Key = d.term(depth + 1)
			m[i].Value = d.term(depth + 1)
		}
		return m
	case PidExt, NewPidExt:
		return Pid(r.Raw())
	case ReferenceExt, NewReferenceExt, NewerReferenceExt:
		return Ref(r.Raw())
	case PortExt, NewPortExt, V4PortExt:
		return Port(r.Raw())
	case FunExt, NewFunExt:
		return Fun(r.Raw())
	default: // ExportExt
		return Export(r.Raw())
	}
}

// count adds n to the elements and returns n. It fails and returns 0 if the sum exceeds MaxElements.
func (d *decoder) count(n int) int {
	d.elements += n
	if d.elements > MaxElements {
		d.r.refuse("more than " + strconv.Itoa(MaxElements) + " elements")
		return 0
	}
	return n
}

// list reads a list. If its tail is also a list, the elements of the tail are added.
func (d *decoder) list(depth int) Term {
	r := &d.r
	var elements List
	for {
		switch r.Peek() {
		case NilExt:
			r.Nil()
			return elements
		case StringExt:
			text := r.StringExt()
			if elements == nil && len(text) > 0 {
				return String(text)
			}
			d.count(len(text))
			for _, c := range text {
				elements = append(elements, int64(c))
			}
			return elements
		case ListExt:
			n := d.count(r.ListHeader())
			elements = slices.Grow(elements, n)
			for range n {
				elements = append(elements, d.term(depth+1))
			}
		default:
			tail := d.term(depth + 1)
			if elements == nil {
				return tail
			}
			return ImproperList{elements, tail}
		}
	}
}

func (d *decoder) integer() Term {
	digits, negative := d.r.big(d.r.next())
	if len(digits) > MaxIntegerBytes {
		d.r.refuse("integer of more than " + strconv.Itoa(MaxIntegerBytes) + " bytes")
		return nil
	}
	digits = bytes.Clone(digits)
	slices.Reverse(digits)
	n := new(big.Int).SetBytes(digits)
	if negative {
		n.Neg(n)
	}
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func (d *decoder) bitstring() Term {
	d.r.next()
	data, bits := d.r.bits()
	data = bytes.Clone(data)
	if bits == 8 {
		return data
	}
	data[len(data)-1] &= 0xff << (8 - bits)
	return Bitstring{data, bits}
}
