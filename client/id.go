package client

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// Octets are the types that an id can be had as, by the generator's format:
// [16]byte, for one [flake.ID], for flake; [10]byte for sno; [8]byte for snowflake
// and flake-idgen, which snowflake.FromBytes makes an ID of. The octets are
// big-endian, and sort as the ids do.
type Octets interface {
	~[8]byte | ~[10]byte | ~[16]byte
}

// The octets of an id by which formats are told apart here.
const (
	snowflakeSize = 8 // and flake-idgen
	snoSize       = 10
)

// Run is ids that follow each other: First and the Count-1 numbers after it.
type Run[ID Octets] struct {
	First ID
	Count int
}

// At gives the id of a place from 0 to Count-1.
func (r Run[ID]) At(i int) ID {
	return idOf[ID](numberOf(r.First).plus(uint64(i)))
}

// All gives the ids, ascending.
func (r Run[ID]) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		first := numberOf(r.First)
		for i := range uint64(r.Count) {
			if !yield(idOf[ID](first.plus(i))) {
				return
			}
		}
	}
}

// number is an id as a number of 128 bits.
type number struct{ hi, lo uint64 }

const maxOctets = 16

func (n number) plus(i uint64) number {
	lo := n.lo + i
	if lo < i {
		n.hi++
	}
	return number{n.hi, lo}
}

func (n number) below(other number) bool {
	return n.hi < other.hi || n.hi == other.hi && n.lo < other.lo
}

func numberOf[ID Octets](id ID) number {
	var b [maxOctets]byte
	for i := range len(id) {
		b[maxOctets-len(id)+i] = id[i]
	}
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// numberOfOctets is numberOf of an id as it came, which may have any length.
func numberOfOctets(id []byte) number {
	var b [maxOctets]byte
	copy(b[max(0, maxOctets-len(id)):], id)
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func idOf[ID Octets](n number) (id ID) {
	var b [maxOctets]byte
	binary.BigEndian.PutUint64(b[:8], n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	return ID(b[maxOctets-len(id):])
}

// fromOctets gives the id that a node answered.
func fromOctets[ID Octets](b []byte) (id ID, err error) {
	if len(b) != len(id) {
		return id, fmt.Errorf("the generator's ids have %d octets, and %T has %d", len(b), id, len(id))
	}
	return ID(b), nil
}
