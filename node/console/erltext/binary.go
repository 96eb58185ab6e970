package erltext

import (
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// Segment is a part of a binary, Value:Size/Type.
type Segment struct {
	Value  Expr
	Size   int      // in bits; if negative, the type's default
	Type   etf.Atom // integer, float, utf8, binary or bitstring
	Little bool
	Signed bool
}

// Bits are the bits of a binary, each a byte of 0 or 1.
type Bits []byte

// BitsOf returns the bits of a binary and reports whether t is one.
func BitsOf(t etf.Term) (Bits, bool) {
	b, ok := t.(etf.Bitstring)
	if !ok {
		if b.Bytes, ok = t.([]byte); !ok {
			return nil, false
		}
		b.Bits = 8
	}
	bits := make(Bits, 0, 8*len(b.Bytes))
	for _, c := range b.Bytes {
		for i := 7; i >= 0; i-- {
			bits = append(bits, c>>i&1)
		}
	}
	return bits[:max(0, len(bits)-8+int(b.Bits))], true
}

// Term returns the binary with these bits.
func (b Bits) Term() etf.Term {
	packed := make([]byte, (len(b)+7)/8)
	for i, bit := range b {
		packed[i/8] |= bit << (7 - i%8)
	}
	if odd := len(b) % 8; odd > 0 {
		return etf.Bitstring{Bytes: packed, Bits: uint8(odd)}
	}
	return packed
}

// Append appends a value as the segment describes it; a list is appended element by element. It fails if the
// value does not have the type, or if the binary would exceed MaxTextBytes.
func (s Segment) Append(b Bits, value etf.Term) (Bits, error) {
	if elements, ok := etf.Elements(value); ok {
		for _, e := range elements {
			var err error
			if b, err = s.Append(b, e); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	more, ok := s.bits(value)
	switch {
	case !ok:
		return nil, fmt.Errorf("part of a binary is not of type %s", s.Type)
	case len(b)+len(more) > 8*MaxTextBytes:
		return nil, fmt.Errorf("binary of more than %d bytes", MaxTextBytes)
	}
	return append(b, more...), nil
}

func (s Segment) bits(value etf.Term) (Bits, bool) {
	switch v := value.(type) {
	case int64:
		switch s.Type {
		case "utf8":
			if v < 0 || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
				return nil, false
			}
			return BitsOf([]byte(string(rune(v))))
		case "float":
			return s.bits(float64(v))
		}
		return s.integer(big.NewInt(v)), s.Type == "integer"
	case *big.Int:
		return s.integer(v), s.Type == "integer"
	case float64:
		switch s.width() {
		case 32:
			return s.integer(big.NewInt(int64(math.Float32bits(float32(v))))), s.Type == "float"
		case 64:
			return s.integer(new(big.Int).SetUint64(math.Float64bits(v))), s.Type == "float"
		}
		return nil, false
	}
	bits, ok := BitsOf(value)
	switch {
	case !ok || s.Type != "binary" && s.Type != "bitstring" || s.Size > len(bits):
		return nil, false
	case s.Size >= 0:
		bits = bits[:s.Size]
	}
	return bits, s.Type == "bitstring" || len(bits)%8 == 0
}

// width returns the number of bits that a number takes.
func (s Segment) width() int {
	switch {
	case s.Size >= 0:
		return s.Size
	case s.Type == "float":
		return 64
	}
	return 8
}

func (s Segment) integer(n *big.Int) Bits {
	size := s.width()
	low := new(big.Int).Mod(n, new(big.Int).Lsh(big.NewInt(1), uint(size))) // never negative
	bits := make(Bits, size)
	for i := range bits {
		bits[i] = byte(low.Bit(s.significance(i)))
	}
	return bits
}

// significance returns the exponent of the i-th bit of a number. A little-endian number has its least significant
// byte first, and the bits of an incomplete byte last.
func (s Segment) significance(i int) int {
	size := s.width()
	if !s.Little {
		return size - 1 - i
	}
	start := i / 8 * 8
	return min(start+8, size) - 1 - i + start
}

// Cut returns the value of the segment at the start of b and the bits after it.
func (s Segment) Cut(b Bits) (value etf.Term, rest Bits, ok bool) {
	switch s.Type {
	case "binary", "bitstring":
		size := s.Size
		if size < 0 {
			size = len(b)
		}
		if size > len(b) || s.Type == "binary" && size%8 != 0 {
			return nil, nil, false
		}
		return b[:size].Term(), b[size:], true
	case "utf8":
		data, _ := b[:min(len(b)/8, utf8.UTFMax)*8].Term().([]byte)
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

func (s Segment) number(b Bits) (etf.Term, bool) {
	n := new(big.Int)
	for i, bit := range b {
		n.SetBit(n, s.significance(i), uint(bit))
	}
	if s.Type == "float" {
		f := math.Float64frombits(n.Uint64())
		if len(b) == 32 {
			f = float64(math.Float32frombits(uint32(n.Uint64())))
		}
		return f, (len(b) == 32 || len(b) == 64) && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	if s.Signed && len(b) > 0 && n.Bit(len(b)-1) == 1 {
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
