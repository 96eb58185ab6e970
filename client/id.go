package client

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// Format is the id types, one for each format: [flake.ID], [snowflake.ID], also for
// flake-idgen, and [sno.ID].
type Format interface {
	flake.ID | snowflake.ID | sno.ID
}

// The sizes of ids in bytes, which tell the formats apart here.
const (
	snowflakeSize = 8 // and flake-idgen
	snoSize       = 10
	flakeSize     = 16
)

// Run is consecutive ids: First and the Count-1 numbers after it.
type Run[ID Format] struct {
	First ID
	Count int
}

// At returns the id at a place from 0 to Count-1.
func (r Run[ID]) At(i int) ID {
	return idOf[ID](numberOf(r.First).plus(uint64(i)))
}

// All returns the ids, ascending.
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

func numberOf[ID Format](id ID) (n number) {
	switch id := any(&id).(type) {
	case *flake.ID:
		n.hi, n.lo = binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	case *snowflake.ID:
		n.lo = uint64(*id)
	case *sno.ID:
		n.hi, n.lo = uint64(binary.BigEndian.Uint16(id[:2])), binary.BigEndian.Uint64(id[2:])
	}
	return n
}

func idOf[ID Format](n number) (id ID) {
	switch id := any(&id).(type) {
	case *flake.ID:
		binary.BigEndian.PutUint64(id[:8], n.hi)
		binary.BigEndian.PutUint64(id[8:], n.lo)
	case *snowflake.ID:
		*id = snowflake.ID(n.lo)
	case *sno.ID:
		binary.BigEndian.PutUint16(id[:2], uint16(n.hi))
		binary.BigEndian.PutUint64(id[2:], n.lo)
	}
	return id
}

// sizeOf returns the size of an id in bytes.
func sizeOf[ID Format]() int {
	switch any(*new(ID)).(type) {
	case snowflake.ID:
		return snowflakeSize
	case sno.ID:
		return snoSize
	}
	return flakeSize
}

// numberOfBytes returns the number of an id of any length.
func numberOfBytes(id []byte) number {
	var b [flakeSize]byte
	copy(b[max(0, len(b)-len(id)):], id)
	return numberOf(flake.ID(b))
}

// bytesOf is the reverse, for an id of size bytes.
func bytesOf(n number, size int) []byte {
	id := idOf[flake.ID](n)
	return id[flakeSize-size:]
}

// fromBytes returns the id in a node's answer.
func fromBytes[ID Format](b []byte) (id ID, err error) {
	if size := sizeOf[ID](); len(b) != size {
		return id, fmt.Errorf("the generator is of another format: its ids have %d bytes, and %T has %d", len(b), id, size)
	}
	return idOf[ID](numberOfBytes(b)), nil
}
