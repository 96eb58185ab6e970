package erltext

import (
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// segment describes a part of a binary, as in Value:Size/Type.
type segment struct {
	size   int      // in bits; if negative, the type's default
	typ    etf.Atom // integer, float, utf8, binary or bitstring
	little bool
	signed bool
}

// bitString holds the bits of a binary, each as a byte that is 0 or 1.
type bitString []byte

// bitsOf returns the bits of t and reports whether t is a binary.
func bitsOf(t etf.Term) (bitString, bool) {
	b, ok := t.(etf.Bitstring)
	if !ok {
		if b.Bytes, ok = t.([]byte); !ok {
			return nil, false
		}
		b.Bits = 8
	}
	bits := make(bitString, 0, 8*len(b.Bytes))
	for _, c := range b.Bytes {
		for i := 7; i >= 0; i-- {
			bits = append(bits, c>>i&1)
		}
	}
	return bits[:max(0, len(bits)-8+int(b.Bits))], true
}

// term returns the binary with these bits.
func (b bitString) term() etf.Term {
	packed := make([]byte, (len(b)+7)/8)
	for i, bit := range b {
		packed[i/8] |= bit << (7 - i%8)
	}
	if odd := len(b) % 8; odd > 0 {
		return etf.Bitstring{Bytes: packed, Bits: uint8(odd)}
	}
	return packed
}

// append appends a value as the segment describes it; a list is appended element by element. It fails if the
// value does not have the segment's type, or if the binary would exceed MaxTextBytes.
func (s segment) append(b bitString, value etf.Term) (bitString, error) {
	if elements, ok := etf.Elements(value); ok {
		for _, e := range elements {
			var err error
			if b, err = s.append(b, e); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	more, ok := s.bits(value)
	switch {
	case !ok:
		return nil, fmt.Errorf("part of a binary is not of type %s", s.typ)
	case len(b)+len(more) > 8*MaxTextBytes:
		return nil, fmt.Errorf("binary of more than %d bytes", MaxTextBytes)
	}
	return append(b, more...), nil
}

func (s segment) bits(value etf.Term) (bitString, bool) {
	switch v := value.(type) {
	case int64:
		switch s.typ {
		case "utf8":
			if v < 0 || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
				return nil, false
			}
			return bitsOf([]byte(string(rune(v))))
		case "float":
			return s.bits(float64(v))
		}
		return s.bits(big.NewInt(v))
	case *big.Int:
		return s.integer(v), s.typ == "integer"
	case float64:
		n, width := new(big.Int).SetUint64(math.Float64bits(v)), s.width()
		if width == 32 {
			n.SetUint64(uint64(math.Float32bits(float32(v))))
		}
		return s.integer(n), s.typ == "float" && (width == 32 || width == 64)
	}
	bits, ok := bitsOf(value)
	switch {
	case !ok || s.typ != "binary" && s.typ != "bitstring" || s.size > len(bits):
		return nil, false
	case s.size >= 0:
		bits = bits[:s.size]
	}
	return bits, s.typ == "bitstring" || len(bits)%8 == 0
}

// width returns the size of a number in bits.
func (s segment) width() int {
	switch {
	case s.size >= 0:
		return s.size
	case s.typ == "float":
		return 64
	}
	return 8
}

func (s segment) integer(n *big.Int) bitString {
	size := s.width()
	low := new(big.Int).Mod(n, new(big.Int).Lsh(big.NewInt(1), uint(size))) // never negative
	bits := make(bitString, size)
	for i := range bits {
		bits[i] = byte(low.Bit(s.significance(i)))
	}
	return bits
}

// significance returns the exponent of the i-th bit of a number. A little-endian number has its least significant
// byte first, and the bits of an incomplete byte last.
func (s segment) significance(i int) int {
	size := s.width()
	if !s.little {
		return size - 1 - i
	}
	start := i / 8 * 8
	return min(start+8, size) - 1 - i + start
}

// cut returns the value of the segment at the start of b and the bits after it.
func (s segment) cut(b bitString) (value etf.Term, rest bitString, ok bool) {
	switch s.typ {
	case "binary", "bitstring":
		size := s.size
		if size < 0 {
			size = len(b)
		}
		if size > len(b) || s.typ == "binary" && size%8 != 0 {
			return nil, nil, false
		}
		return b[:size].term(), b[size:], true
	case "utf8":
		data, _ := b[:min(len(b)/8, utf8.UTFMax)*8].term().([]byte)
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size <= 1 {
			return nil, nil, false
		}
		return int64(c), b[8*size:], true
	}
	size := s.width()
	if size > len(b) {
		return nil, nil, false
	}
	value, ok = s.number(b[:size])
	return value, b[size:], ok
}

func (s segment) number(b bitString) (etf.Term, bool) {
	n := new(big.Int)
	for i, bit := range b {
		n.SetBit(n, s.significance(i), uint(bit))
	}
	if s.typ == "float" {
		f := math.Float64frombits(n.Uint64())
		if len(b) == 32 {
			f = float64(math.Float32frombits(uint32(n.Uint64())))
		}
		return f, (len(b) == 32 || len(b) == 64) && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	if s.signed && len(b) > 0 && n.Bit(len(b)-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))))
	}
	return shortest(n), true
}

// shortest returns n as an int64 if it fits.
func shortest(n *big.Int) etf.Term {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}
