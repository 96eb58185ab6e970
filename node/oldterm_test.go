package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/flake-go/flake/node/handshake"
)

// atom, identifier and tuple are terms of the peer, in addition to int64, string (a STRING_EXT or
// a float), []byte and []any.
type (
	atom       string
	identifier string // in external bytes
	tuple      []any
)

func (p *old) put(b []byte, terms ...any) []byte {
	for _, t := range terms {
		switch t := t.(type) {
		case atom:
			b = append(append(b, 100, 0, byte(len(t))), t...)
		case identifier:
			b = append(b, t...)
		case int:
			b = binary.BigEndian.AppendUint32(append(b, 98), uint32(t))
		case []byte:
			b = append(binary.BigEndian.AppendUint32(append(b, 109), uint32(len(t))), t...)
		case tuple:
			b = p.put(append(b, 104, byte(len(t))), t...)
		case []any:
			if len(t) > 0 {
				b = p.put(append(b, 108, 0, 0, 0, byte(len(t))), t...)
			}
			b = append(b, 106)
		default:
			p.t.Fatalf("%T", t)
		}
	}
	return b
}

// oldReader reads terms with tags that the flags allow.
type oldReader struct {
	t     *testing.T
	flags handshake.Flags
	b     []byte
}

func (r *oldReader) take(n int) []byte {
	r.t.Helper()
	if n > len(r.b) {
		r.t.Fatalf("%x has fewer than %d bytes", r.b, n)
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *oldReader) number(n int) (v int) {
	for _, b := range r.take(n) {
		v = v<<8 | int(b)
	}
	return v
}

func (r *oldReader) want(octets ...byte) {
	r.t.Helper()
	if got := r.take(len(octets)); !bytes.Equal(got, octets) {
		r.t.Fatalf("read %x, want %x", got, octets)
	}
}

// oldTags are the tags of the peer, by the flag that each needs.
var oldTags = map[int]handshake.Flags{
	97: 0, 98: 0, 99: 0, 100: 0, 101: 0, 102: 0, 103: 0, 104: 0, 105: 0, 106: 0, 107: 0, 108: 0, 109: 0,
	110: 0, 111: 0, 114: handshake.ExtendedReferences,
	70: handshake.NewFloats, 115: handshake.SmallAtomTags,
	118: handshake.UTF8Atoms, 119: handshake.UTF8Atoms,
	88: handshake.BigCreation, 90: handshake.BigCreation, 116: handshake.MapTag,
}

func (r *oldReader) term() any {
	r.t.Helper()
	whole := r.b
	tag := r.number(1)
	if need, known := oldTags[tag]; !known || !r.flags.Has(need) {
		r.t.Fatalf("tag %d in %x", tag, whole)
	}
	kept := func() identifier { return identifier(whole[:len(whole)-len(r.b)]) }
	switch tag {
	case 97:
		return int64(r.number(1))
	case 98:
		return int64(int32(r.number(4)))
	case 110:
		digits, sign := r.take(r.number(1)+1), int64(1)
		if digits[0] != 0 {
			sign = -1
		}
		var b [8]byte
		copy(b[:], digits[1:])
		return sign * int64(binary.LittleEndian.Uint64(b[:]))
	case 70:
		return fmt.Sprintf("%x", r.take(8))
	case 99:
		return string(bytes.TrimRight(r.take(31), "\x00"))
	case 100, 118:
		return atom(r.take(r.number(2)))
	case 115, 119:
		return atom(r.take(r.number(1)))
	case 107:
		return string(r.take(r.number(2)))
	case 109:
		return bytes.Clone(r.take(r.number(4)))
	case 106:
		return []any(nil)
	case 104:
		return tuple(r.terms(r.number(1)))
	case 108:
		list := r.terms(r.number(4))
		return append(list, r.term())
	case 103, 88:
		r.term()
		r.take(map[int]int{103: 9, 88: 12}[tag])
		return kept()
	case 114, 90:
		words := r.number(2)
		r.term()
		r.take(4*words + map[int]int{114: 1, 90: 4}[tag])
		return kept()
	}
	r.t.Fatalf("tag %d is not expected", tag)
	return nil
}

func (r *oldReader) terms(n int) (terms []any) {
	for range n {
		terms = append(terms, r.term())
	}
	return terms
}
