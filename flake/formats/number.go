package formats

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/flake-go/flake/flake"
)

// Number is an id of any format as one unsigned number of 128 bits. Its bytes are those
// of the number, big-endian, as many as the format has.
type Number struct{ Hi, Lo uint64 }

// maxOctets is the size of the largest id.
const maxOctets = len(flake.ID{})

// NumberOf reads big-endian bytes, 16 at most.
func NumberOf(octets string) Number {
	var b [maxOctets]byte
	copy(b[maxOctets-len(octets):], octets)
	return of128(b)
}

func of128[ID ~[maxOctets]byte](id ID) Number {
	return Number{binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])}
}

func (n Number) flake() (id flake.ID) {
	binary.BigEndian.PutUint64(id[:8], n.Hi)
	binary.BigEndian.PutUint64(id[8:], n.Lo)
	return id
}

// Plus returns the number i after n.
func (n Number) Plus(i int) Number { return n.add(Number{Lo: uint64(i)}) }

func (n Number) add(m Number) Number {
	lo, carry := bits.Add64(n.Lo, m.Lo, 0)
	return Number{n.Hi + m.Hi + carry, lo}
}

// shifted returns the number with its bits moved up, or down if by is below 0.
func (n Number) shifted(by int) Number {
	switch {
	case by >= 64:
		return Number{Hi: n.Lo << (by - 64)}
	case by >= 0:
		return Number{n.Hi<<by | n.Lo>>(64-by), n.Lo << by}
	case by > -64:
		return Number{n.Hi >> -by, n.Lo>>-by | n.Hi<<(64+by)}
	}
	return Number{Lo: n.Hi >> (-by - 64)}
}

// Compare returns -1, 0 or 1 as n is less than, equal to or greater than m.
func (n Number) Compare(m Number) int {
	return cmp.Or(cmp.Compare(n.Hi, m.Hi), cmp.Compare(n.Lo, m.Lo))
}

// AppendOctets appends the last size bytes of the number, 16 at most.
func (n Number) AppendOctets(dst []byte, size int) []byte {
	id := n.flake()
	return append(dst, id[maxOctets-size:]...)
}

// AppendDigits appends the number in a base from 2 to 62, digits 0-9A-Za-z in that
// order, without padding. Another base panics.
func (n Number) AppendDigits(dst []byte, base int) []byte {
	dst, err := n.flake().AppendBase(dst, base)
	if err != nil {
		panic(err)
	}
	return dst
}

// highest returns the highest number of size bytes, 8 to 16.
func highest(size int) Number { return Number{1<<(8*(size-8)) - 1, math.MaxUint64} }
