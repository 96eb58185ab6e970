package erltext

import (
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// segment is how a value lies in a binary: Value:Size/Type.
type segment struct {
	kind   etf.Atom // integer, float or utf8
	size   int      // bits, -1 if not given
	little bool
}

// binary reads a binary, after its <<.
func (p *parser) binary() Expr {
	var bits bitWriter
	for first := true; p.err == nil && !(first && p.accept(">>")); first = false {
		p.element(&bits)
		if p.accept(">>") {
			break
		}
		if p.token.is("||") {
			p.unsupported(p.token)
		}
		p.expect(",")
	}
	return &Literal{bits.term()}
}

// element reads one value and its segment, and writes it.
func (p *parser) element(bits *bitWriter) {
	start := p.token
	value, text := p.elementValue()
	s := segment{kind: "integer", size: -1}
	if p.accept(":") {
		s.size = p.size()
	}
	if p.accept("/") {
		p.types(start, &s)
	}
	if p.err != nil {
		return
	}
	values := []etf.Term{value}
	if start.kind == stringToken {
		values = nil
		for _, c := range text {
			values = append(values, int64(c))
		}
	}
	for _, v := range values {
		if len(bits.bytes)+max(s.size, 0)/8 > MaxTextBytes {
			p.fail(start.Errorf("binary of more than %d bytes", MaxTextBytes))
			return
		}
		if !bits.write(v, s) {
			p.unsupported(start)
			return
		}
	}
}

// elementValue reads a number or, if one is next, a string.
func (p *parser) elementValue() (etf.Term, string) {
	if p.token.kind == stringToken {
		return nil, p.strings()
	}
	negative := p.token.is("-")
	if negative || p.token.is("+") {
		p.next()
	}
	n := p.elementNumber()
	if negative && n != nil {
		n = negated(n)
	}
	return n, ""
}

// elementNumber reads a number. Erlang allows anything that is neither a call nor a map.
func (p *parser) elementNumber() etf.Term {
	start := p.token
	switch {
	case start.kind == atomToken:
		p.next()
		if p.token.is("(") {
			p.misplaced()
		}
	case start.is("#"):
		p.misplaced()
	default:
		if literal, ok := p.primary().(*Literal); ok && rank(literal.Term) <= floatRank {
			return literal.Term
		}
	}
	p.unsupported(start)
	return nil
}

func (p *parser) size() int {
	start := p.token
	n, ok := p.elementNumber().(int64)
	if !ok || n < 0 || n > 8*MaxTextBytes {
		p.unsupported(start)
	}
	return int(n)
}

// types reads the words after a slash.
func (p *parser) types(start token, s *segment) {
	for {
		t := p.token
		if t.kind != atomToken {
			p.misplaced()
			return
		}
		p.next()
		if p.accept(":") {
			if p.token.kind != valueToken {
				p.misplaced()
			}
			p.unsupported(t)
		}
		switch t.text {
		case "integer", "float", "utf8":
			s.kind = etf.Atom(t.text)
		case "little":
			s.little = true
		case "big", "unsigned", "signed":
		case "binary", "bytes", "bitstring", "bits", "native", "unit", "utf16", "utf32":
			p.unsupported(t)
		default:
			p.forbid(start.Position, "bit type "+t.text+" undefined")
		}
		if !p.accept("-") {
			break
		}
	}
	if s.kind == "utf8" && s.size >= 0 {
		p.forbid(start.Position, "neither size nor unit must be given for segments of type utf8/utf16/utf32")
	}
}

// bitWriter builds a binary.
type bitWriter struct {
	bytes []byte
	used  int // bits of the last byte, 0 if it is whole
}

func (w *bitWriter) term() etf.Term {
	if w.used > 0 {
		return etf.Bitstring{Bytes: w.bytes, Bits: uint8(w.used)}
	}
	return append([]byte{}, w.bytes...)
}

// write appends a value, and reports whether it could.
func (w *bitWriter) write(value etf.Term, s segment) bool {
	f, isFloat := value.(float64)
	switch {
	case s.kind == "utf8":
		c, ok := value.(int64)
		if !ok || c < 0 || c > utf8.MaxRune || !utf8.ValidRune(rune(c)) {
			return false
		}
		text := []byte(string(rune(c)))
		value, s.size, s.little = new(big.Int).SetBytes(text), 8*len(text), false
	case s.kind == "float" && isFloat && (s.size == -1 || s.size == 64):
		value, s.size = new(big.Int).SetUint64(math.Float64bits(f)), 64
	case s.kind == "float" && isFloat && s.size == 32:
		value = int64(math.Float32bits(float32(f)))
	case s.kind == "float" || isFloat:
		return false
	case s.size < 0:
		s.size = 8
	}
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(s.size))
	low := new(big.Int).Mod(bigOf(value), modulus) // never negative
	unit := s.size
	if s.little { // byte by byte, the odd bits last
		unit = 8
	}
	for start := 0; start < s.size; start += unit {
		for i := min(start+unit, s.size) - 1; i >= start; i-- {
			w.bit(byte(low.Bit(i)))
		}
	}
	return true
}

func (w *bitWriter) bit(b byte) {
	if w.used == 0 {
		w.bytes = append(w.bytes, 0)
	}
	w.bytes[len(w.bytes)-1] |= b << (7 - w.used)
	w.used = (w.used + 1) & 7
}
