package etf

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// funFrame is a NEW_FUN_EXT whose free variables are being read.
type funFrame struct {
	end     int // offset of its end, according to Size
	pending int // number of terms that must follow the fun
}

// Raw reads and checks one whole term of any kind, and returns its external bytes, a part of the source. It does not
// recurse, so terms may have any depth.
func (r *Reader) Raw() []byte {
	if n := leaf(r.src[r.off:]); n > 0 {
		return r.take(n)
	}
	return r.rawTree()
}

func (r *Reader) rawTree() []byte {
	var room [4]funFrame // deeper nesting of funs allocates on the heap
	funs := room[:0]
	start := r.off
	for pending := 1; pending > 0 && !r.failed(); {
		inside, end := r.head()
		pending--
		if end != 0 {
			funs = append(funs, funFrame{end, pending})
		}
		pending += inside
		if pending > len(r.src)-r.off {
			r.refuse("truncated")
		}
		for n := len(funs); n > 0 && pending == funs[n-1].pending; n-- {
			if r.off != funs[n-1].end {
				r.refuse("the enclosing fun has a wrong size")
			}
			funs = funs[:n-1]
		}
	}
	if r.failed() {
		return nil
	}
	return r.src[start:r.off:r.off]
}

// Count returns the number of terms in src, including those inside others, and the bytes of strings,
// each of which may become a term. If src is not one term, it returns len(src).
func Count(src []byte) (n int) {
	r := NewReader(src)
	for pending := 1; pending > 0; pending-- {
		start, text := r.off, r.Peek() == StringExt
		inside, _ := r.head()
		if pending += inside; r.failed() || pending > len(src) {
			return len(src)
		}
		if n++; text {
			n += r.off - start
		}
	}
	return n
}

// head reads one term without the terms inside it, and returns how many terms are inside. For a fun with a size, end
// is the offset of its end.
func (r *Reader) head() (inside, end int) {
	if n := leaf(r.src[r.off:]); n > 0 {
		r.at = r.off
		r.off += n
		return 0, 0
	}
	switch tag := r.next(); tag {
	case SmallIntegerExt:
		r.take(1)
	case IntegerExt:
		r.take(4)
	case SmallBigExt, LargeBigExt:
		r.big(tag)
	case FloatExt, NewFloatExt:
		r.float(tag)
	case AtomExt, SmallAtomExt, AtomUTF8Ext, SmallAtomUTF8Ext:
		r.text(tag)
	case PidExt, NewPidExt, PortExt, NewPortExt, V4PortExt, ReferenceExt, NewReferenceExt, NewerReferenceExt:
		r.identifier(tag)
	case NilExt:
	case StringExt:
		r.take(r.uint16())
	case BinaryExt:
		r.take(int(r.uint32()))
	case BitBinaryExt:
		r.bits()
	case SmallTupleExt, LargeTupleExt:
		inside = r.tuple(tag)
	case ListExt:
		inside = r.list() + 1
	case MapExt:
		inside = 2 * r.pairs()
	case FunExt, NewFunExt:
		f := r.fun(tag)
		return f.free, f.end
	case ExportExt:
		r.Atom()
		r.Atom()
		r.expect(SmallIntegerExt, "arity is not a SMALL_INTEGER_EXT")
		r.uint8()
	default:
		r.refuse("unknown tag")
	}
	return inside, 0
}

// The methods below read a term after its tag.

func (r *Reader) tuple(tag Tag) int {
	if tag == SmallTupleExt {
		return r.count(uint32(r.uint8()), 1, 0)
	}
	return r.count(r.uint32(), 1, 0)
}

func (r *Reader) list() int  { return r.count(r.uint32(), 1, 1) }
func (r *Reader) pairs() int { return r.count(r.uint32(), 2, 0) }

// bits reads a bit string; its second result is the number of bits in the last byte.
func (r *Reader) bits() (data []byte, bits uint8) {
	n := r.uint32()
	bits = r.uint8()
	if bits < 1 || bits > 8 || n == 0 {
		r.refuse("ill-formed bit string")
	}
	return r.take(int(n)), bits
}

// atom reads the text of an atom, and converts it to UTF-8 if it is Latin-1.
func (r *Reader) atom(tag Tag) []byte {
	text := r.text(tag)
	if latin1(tag) && !ascii(text) {
		return toUTF8(text)
	}
	return text
}

func latin1(tag Tag) bool { return tag == SmallAtomExt || tag == AtomExt }

// text reads the text of an atom as it was sent.
func (r *Reader) text(tag Tag) (text []byte) {
	switch tag {
	case SmallAtomExt, SmallAtomUTF8Ext:
		text = r.take(int(r.uint8()))
	case AtomExt, AtomUTF8Ext:
		text = r.take(r.uint16())
	default:
		r.refuse("not an atom")
	}
	switch {
	case len(text) > MaxAtomChars && (latin1(tag) || utf8.RuneCount(text) > MaxAtomChars):
		r.refuse("atom is too long")
	case !latin1(tag) && !utf8.Valid(text):
		r.refuse("atom is not UTF-8")
	}
	if r.failed() {
		return nil
	}
	return text
}

func ascii(text []byte) bool {
	const highBits = 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&highBits != 0 {
			return false
		}
	}
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// integer reads an integer of at most 64 bits, tag included.
func (r *Reader) integer() (magnitude uint64, negative bool) {
	switch tag := r.next(); tag {
	case SmallIntegerExt:
		return uint64(r.uint8()), false
	case IntegerExt:
		n := int64(int32(r.uint32()))
		return uint64(max(n, -n)), n < 0
	case SmallBigExt, LargeBigExt:
		digits, negative := r.big(tag)
		if len(digits) > 8 {
			r.refuse("integer out of range")
			return 0, false
		}
		for i, digit := range digits {
			magnitude |= uint64(digit) << (8 * i)
		}
		return magnitude, negative
	}
	r.refuse("not an integer")
	return 0, false
}

// big reads the bytes of an integer's magnitude, least significant first, without trailing zeros.
func (r *Reader) big(tag Tag) (digits []byte, negative bool) {
	var n int
	if tag == SmallBigExt {
		n = int(r.uint8())
	} else {
		n = int(r.uint32())
	}
	sign := r.uint8() // 0 or 1; OTP treats other values as 1
	return bytes.TrimRight(r.take(n), "\x00"), sign != 0
}

// float reads a float, and refuses NaN and infinity.
func (r *Reader) float(tag Tag) float64 {
	var f float64
	if tag == NewFloatExt {
		if b := r.take(8); b != nil {
			f = math.Float64frombits(binary.BigEndian.Uint64(b))
		}
	} else {
		text, _, _ := bytes.Cut(r.take(31), []byte{0})
		var err error
		f, err = strconv.ParseFloat(string(text), 64)
		if err != nil || len(bytes.Trim(text, "0123456789.e+-")) > 0 { // such as 0x10
			r.refuse("ill-formed float")
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.refuse("float is not finite")
	}
	return f
}

// leaf is a fast path for the terms that make up most calls: ASCII atoms, pids and references of
// nodes with ASCII names, and small integers, in their newest forms. If src begins with such a term
// and contains all of it, leaf returns the term's length. Otherwise it returns 0, and head must read
// the term.
func leaf(src []byte) int {
	if len(src) < 2 {
		return 0
	}
	switch Tag(src[0]) {
	case SmallAtomUTF8Ext:
		return smallAtom(src)
	case SmallIntegerExt:
		return 2
	case NewPidExt:
		const rest = 12 // ID, serial, creation
		if n := smallAtom(src[1:]); n > 0 && 1+n+rest <= len(src) {
			return 1 + n + rest
		}
	case NewerReferenceExt:
		const head, creation = 3, 4
		if len(src) < head {
			return 0
		}
		words := int(binary.BigEndian.Uint16(src[1:]))
		n := smallAtom(src[head:])
		if size := head + n + creation + 4*words; n > 0 && words >= 1 && words <= MaxReferenceWords && size <= len(src) {
			return size
		}
	}
	return 0
}

// smallAtom is leaf for atoms alone.
func smallAtom(src []byte) int {
	if len(src) < 2 || Tag(src[0]) != SmallAtomUTF8Ext {
		return 0
	}
	n := 2 + int(src[1])
	if n > len(src) || !ascii(src[2:n]) {
		return 0
	}
	return n
}

// identifier is a decoded pid, port or reference.
type identifier struct {
	tag      Tag
	node     []byte // text of the atom
	words    []byte // pid: ID, Serial; port: ID; reference: its words
	creation uint32
}

// identifier reads a pid, port or reference after its tag.
func (r *Reader) identifier(tag Tag) identifier {
	id := identifier{tag: tag}
	layout, size := &forms[tag], 0
	if layout.words == 0 {
		size = 4 * r.uint16()
		if size == 0 || size > 4*MaxReferenceWords {
			r.refuse("reference does not have 1 to 5 words")
		}
	}
	start := r.at
	id.node = r.Atom()
	r.at = start
	id.words = r.take(4 * layout.words)
	if layout.creation == 1 {
		id.creation = uint32(r.uint8())
	} else {
		id.creation = r.uint32()
	}
	if layout.words == 0 {
		id.words = r.take(size)
	}
	return id
}

// parseIdentifier decodes the external bytes of a pid, port or reference. For other bytes it returns the zero value.
func parseIdentifier(external []byte) identifier {
	r := NewReader(external)
	id := r.identifier(r.next())
	if r.Finish() != nil || forms[id.tag].creation == 0 {
		return identifier{}
	}
	return id
}

// word returns word i, or 0 if there are fewer words.
func (id identifier) word(i int) uint32 {
	if len(id.words) < 4*i+4 {
		return 0
	}
	return binary.BigEndian.Uint32(id.words[4*i:])
}

// number returns the ID of a port, which may have two words.
func (id identifier) number() (n uint64) {
	for _, b := range id.words {
		n = n<<8 | uint64(b)
	}
	return n
}

// toUTF8 converts text from Latin-1.
func toUTF8(text []byte) []byte {
	converted := make([]byte, 0, 2*len(text))
	for _, c := range text {
		converted = utf8.AppendRune(converted, rune(c))
	}
	return converted
}

// fun is a fun without its free variables.
type fun struct {
	module      []byte
	index, uniq int64 // OldIndex and OldUniq, which Erlang prints
	free        int   // number of free variables, which follow
	end         int   // offset of its end according to Size, 0 for a FUN_EXT
}

// fun reads a fun after its tag, up to its free variables.
func (r *Reader) fun(tag Tag) (f fun) {
	if tag == FunExt {
		f.free = r.count(r.uint32(), 1, 0)
		r.Pid()
	} else {
		f.end = r.off
		size := r.uint32() // counts itself
		f.end += 4 + r.count(max(size, 4)-4, 1, 0)
		r.take(1 + 16 + 4)
		f.free = r.count(r.uint32(), 1, 0)
	}
	f.module = r.Atom()
	f.index = r.Int()
	f.uniq = r.Int()
	if tag == NewFunExt {
		r.Pid()
	}
	return f
}
