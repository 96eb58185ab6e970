package snowflake

import (
	"cmp"
	"encoding/binary"
)

// ID is one id, as a number. Any number is an ID; what is in it depends on its
// [Layout].
type ID uint64

// Bytes is the id's 8 bytes, big-endian: what flake-idgen's next returns.
func (id ID) Bytes() (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// FromBytes is the reverse of [ID.Bytes].
func FromBytes(b [8]byte) ID { return ID(binary.BigEndian.Uint64(b[:])) }

// Plus returns the id that is i after this one in a [Run].
func (id ID) Plus(i int) ID { return id + ID(i) }

// IsZero tells whether it is 0.
func (id ID) IsZero() bool { return id == 0 }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other.
// It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return cmp.Compare(id, other) }
