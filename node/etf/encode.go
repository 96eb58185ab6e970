package etf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"
)

// Append appends a term, without a version byte, in the form that the peer supports. It refuses
// values that are not terms, terms deeper than MaxDepth, and terms that the peer does not support.
// If it refuses t, it returns dst unchanged.
//
// Pids, references and ports are appended unchanged if the peer supports their form, and otherwise in the old form,
// with only the lowest byte of Creation. Funs are always appended unchanged.
func Append(dst []byte, t Term, caps Caps) ([]byte, error) {
	e := encoder{dst: dst, caps: caps}
	if e.term(t, 1); e.err != nil {
		return dst, e.err
	}
	return e.dst, nil
}

// encoder appends terms. Its first failure sticks.
type encoder struct {
	dst  []byte
	caps Caps
	err  error
}

// note records an error, unless it is nil or there was an earlier one.
func (e *encoder) note(err error) {
	if e.err == nil {
		e.err = err
	}
}

// need records an error about a kind of term unless the peer supports it.
func (e *encoder) need(supported bool, kind string) {
	if !supported {
		e.note(fmt.Errorf("etf: the peer does not support %s", kind))
	}
}

func (e *encoder) term(t Term, depth int) {
	if depth > MaxDepth {
		e.note(fmt.Errorf("etf: term nested deeper than %d", MaxDepth))
	}
	if e.err != nil {
		return
	}
	switch t := t.(type) {
	case int64:
		e.dst = AppendInt(e.dst, t)
	case *big.Int:
		e.big(t)
	case float64:
		e.float(t)
	case Atom:
		e.atom(t)
	case []byte:
		e.dst = AppendBinary(e.dst, t)
	case Bitstring:
		e.bitstring(t)
	case String:
		e.dst = appendString(e.dst, t)
	case List:
		e.list(t, depth)
		e.dst = AppendNil(e.dst)
	case ImproperList:
		if len(t.Elements) == 0 {
			e.note(errors.New("etf: improper list without elements"))
		}
		e.list(t.Elements, depth)
		e.term(t.Tail, depth+1)
	case Tuple:
		e.dst = AppendTupleHeader(e.dst, len(t))
		e.terms(t, depth)
	case Map:
		e.need(e.caps.MapTag, "maps")
		e.dst = binary.BigEndian.AppendUint32(append(e.dst, byte(MapExt)), uint32(len(t)))
		for _, pair := range t {
			e.term(pair.Key, depth+1)
			e.term(pair.Value, depth+1)
		}
	case Encoded:
		e.dst = append(e.dst, t...)
	case Pid:
		e.identifier(string(t), NewPidExt, PidExt)
	case Ref:
		e.identifier(string(t), NewerReferenceExt, NewReferenceExt, ReferenceExt)
	case Port:
		e.identifier(string(t), NewPortExt, V4PortExt, PortExt)
	case Fun:
		e.note(check(string(t), NewFunExt, FunExt))
		e.dst = append(e.dst, t...)
	case Export:
		e.export(t)
	default:
		e.note(fmt.Errorf("etf: a %T is not a term", t))
	}
}

func (e *encoder) terms(terms []Term, depth int) {
	for _, t := range terms {
		e.term(t, depth+1)
	}
}

// list appends a list without its tail.
func (e *encoder) list(elements []Term, depth int) {
	if len(elements) > 0 {
		e.dst = AppendListHeader(e.dst, len(elements))
	}
	e.terms(elements, depth)
}

func (e *encoder) atom(a Atom) {
	var err error
	e.dst, err = appendAtom(e.dst, a, e.caps)
	e.note(err)
}

func (e *encoder) big(n *big.Int) {
	if n.IsInt64() {
		e.dst = AppendInt(e.dst, n.Int64())
		return
	}
	digits := n.Bytes()
	slices.Reverse(digits)
	if len(digits) <= math.MaxUint8 {
		e.dst = append(e.dst, byte(SmallBigExt), byte(len(digits)))
	} else {
		e.dst = binary.BigEndian.AppendUint32(append(e.dst, byte(LargeBigExt)), uint32(len(digits)))
	}
	sign := byte(0)
	if n.Sign() < 0 {
		sign = 1
	}
	e.dst = append(append(e.dst, sign), digits...)
}

func (e *encoder) float(f float64) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		e.note(fmt.Errorf("etf: %v is not a float in Erlang", f))
	case e.caps.NewFloats:
		e.dst = binary.BigEndian.AppendUint64(append(e.dst, byte(NewFloatExt)), math.Float64bits(f))
	default:
		var text [31]byte
		copy(text[:], fmt.Sprintf("%.20e", f))
		e.dst = append(append(e.dst, byte(FloatExt)), text[:]...)
	}
}

func (e *encoder) bitstring(b Bitstring) {
	if b.Bits < 1 || b.Bits > 7 || len(b.Bytes) == 0 {
		e.note(fmt.Errorf("etf: bit string of %d bytes with %d bits in the last byte", len(b.Bytes), b.Bits))
	}
	e.need(e.caps.BitBinaries, "bit strings")
	e.dst = binary.BigEndian.AppendUint32(append(e.dst, byte(BitBinaryExt)), uint32(len(b.Bytes)))
	e.dst = append(append(e.dst, b.Bits), b.Bytes...)
}

// check returns an error unless external is exactly one term, with one of tags.
func check(external string, tags ...Tag) error {
	r := NewReader([]byte(external))
	if !slices.Contains(tags, r.Peek()) {
		return fmt.Errorf("etf: %q: not a %s", external, tags[0])
	}
	r.Raw()
	return r.Finish()
}

func (e *encoder) export(x Export) {
	e.note(check(string(x), ExportExt))
	e.need(e.caps.ExportPtrTag, "external funs")
	switch {
	case e.err != nil:
	case e.caps.UTF8Atoms:
		e.dst = append(e.dst, x...)
	default:
		r := NewReader([]byte(x[1:]))
		e.dst = append(e.dst, byte(ExportExt))
		e.atom(Atom(r.Atom()))
		e.atom(Atom(r.Atom()))
		e.dst = append(e.dst, r.Rest()...)
	}
}

// identifier appends a pid, reference or port, whose tag must be one of tags.
func (e *encoder) identifier(external string, tags ...Tag) {
	e.note(check(external, tags...))
	id := parseIdentifier([]byte(external))
	tag := e.caps.tagFor(id.tag)
	if tag == id.tag && e.caps.UTF8Atoms {
		e.dst = append(e.dst, external...)
		return
	}
	if id.tag == V4PortExt && tag != V4PortExt {
		if id.number() > math.MaxUint32 {
			e.note(fmt.Errorf("etf: port %d: the peer does not support numbers beyond 32 bits", id.number()))
		}
		id.words = id.words[4:]
	}
	layout := &forms[tag]
	var creation [4]byte
	binary.BigEndian.PutUint32(creation[:], id.creation)
	first, last := id.words, creation[4-layout.creation:]
	e.dst = append(e.dst, byte(tag))
	if layout.words == 0 {
		e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(len(id.words)/4))
		first, last = last, first
	}
	e.atom(Atom(id.node))
	e.dst = append(append(e.dst, first...), last...)
}

// tagFor returns the tag under which the peer can read an identifier that was received under tag.
func (c Caps) tagFor(tag Tag) Tag {
	if tag == V4PortExt && !c.V4NC {
		tag = NewPortExt
	}
	if !c.BigCreation {
		tag = forms[tag].old
	}
	return tag
}

// Caps lists the forms that a peer supports. Each field is the distribution flag of that name; the zero value
// describes the oldest peers.
type Caps struct {
	UTF8Atoms     bool // UTF8_ATOMS: SMALL_ATOM_UTF8_EXT, ATOM_UTF8_EXT; otherwise Latin-1
	SmallAtomTags bool // SMALL_ATOM_TAGS: SMALL_ATOM_EXT; otherwise ATOM_EXT
	BigCreation   bool // BIG_CREATION: NEW_PID_EXT, NEW_PORT_EXT, NEWER_REFERENCE_EXT; otherwise the forms with 1 byte
	V4NC          bool // V4_NC: V4_PORT_EXT; otherwise NEW_PORT_EXT, if the number fits in it
	NewFloats     bool // NEW_FLOATS: NEW_FLOAT_EXT; otherwise FLOAT_EXT
	MapTag        bool // MAP_TAG: MAP_EXT; otherwise maps are errors
	ExportPtrTag  bool // EXPORT_PTR_TAG: EXPORT_EXT; otherwise external funs are errors
	BitBinaries   bool // BIT_BINARIES: BIT_BINARY_EXT; otherwise bit strings are errors
}

// AllCaps are the Caps of a peer that supports all forms, as OTP 25 and later do.
var AllCaps = Caps{true, true, true, true, true, true, true, true}

// The functions below append a term, or the header of a term, and return the extended buffer. They do not
// allocate if dst has room.

// appendAtom appends an atom in the form that the peer supports. It fails if the text is not UTF-8, has more than
// MaxAtomChars characters, or is not Latin-1 and the peer does not support UTF-8.
func appendAtom(dst []byte, a Atom, caps Caps) ([]byte, error) {
	if len(a) > MaxAtomChars && utf8.RuneCountInString(string(a)) > MaxAtomChars {
		return dst, fmt.Errorf("etf: atom %.20q...: more than %d characters", a, MaxAtomChars)
	}
	if !utf8.ValidString(string(a)) {
		return dst, fmt.Errorf("etf: atom %q: not UTF-8", a)
	}
	if caps.UTF8Atoms {
		return appendUTF8Atom(dst, a), nil
	}
	n := 0
	for _, c := range a {
		if c > 0xff {
			return dst, fmt.Errorf("etf: atom %q: not Latin-1, and the peer does not support UTF-8", a)
		}
		n++
	}
	if caps.SmallAtomTags {
		dst = append(dst, byte(SmallAtomExt), byte(n))
	} else {
		dst = append(dst, byte(AtomExt), 0, byte(n))
	}
	for _, c := range a {
		dst = append(dst, byte(c))
	}
	return dst, nil
}

// MustAppendAtom is like Append, for atoms that are constants or that Append has checked. It panics if Append
// fails.
func MustAppendAtom(dst []byte, a Atom, caps Caps) []byte {
	dst, err := appendAtom(dst, a, caps)
	if err != nil {
		panic(err)
	}
	return dst
}

func appendUTF8Atom(dst []byte, a Atom) []byte {
	if len(a) <= math.MaxUint8 {
		dst = append(dst, byte(SmallAtomUTF8Ext), byte(len(a)))
	} else {
		dst = append(dst, byte(AtomUTF8Ext), byte(len(a)>>8), byte(len(a)))
	}
	return append(dst, a...)
}

// AppendInt appends an integer in its shortest form.
func AppendInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0 && n <= math.MaxUint8:
		return append(dst, byte(SmallIntegerExt), byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(dst, byte(IntegerExt)), uint32(n))
	case n < 0:
		return appendBig(dst, 1, -uint64(n))
	}
	return appendBig(dst, 0, uint64(n))
}

// AppendUint64 appends an integer in its shortest form.
func AppendUint64(dst []byte, n uint64) []byte {
	if n <= math.MaxInt64 {
		return AppendInt(dst, int64(n))
	}
	return appendBig(dst, 0, n)
}

func appendBig(dst []byte, sign byte, magnitude uint64) []byte {
	dst = append(dst, byte(SmallBigExt), 0, sign)
	start := len(dst)
	for ; magnitude > 0; magnitude >>= 8 {
		dst = append(dst, byte(magnitude))
	}
	dst[start-2] = byte(len(dst) - start)
	return dst
}

// AppendBinary appends a binary.
func AppendBinary(dst, data []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, byte(BinaryExt)), uint32(len(data)))
	return append(dst, data...)
}

// appendString appends a list of bytes: a STRING_EXT, or a LIST_EXT if it has more than 65,535 bytes.
func appendString(dst []byte, text String) []byte {
	switch {
	case len(text) == 0:
		return AppendNil(dst)
	case len(text) <= math.MaxUint16:
		return append(append(dst, byte(StringExt), byte(len(text)>>8), byte(len(text))), text...)
	}
	dst = AppendListHeader(dst, len(text))
	for i := range len(text) {
		dst = append(dst, byte(SmallIntegerExt), text[i])
	}
	return AppendNil(dst)
}

// AppendTupleHeader appends the header of a tuple. arity elements must follow.
func AppendTupleHeader(dst []byte, arity int) []byte {
	if arity <= math.MaxUint8 {
		return append(dst, byte(SmallTupleExt), byte(arity))
	}
	return binary.BigEndian.AppendUint32(append(dst, byte(LargeTupleExt)), uint32(arity))
}

// AppendListHeader appends the header of a list. n elements must follow, and then the tail, which AppendNil appends
// for a proper list. For an empty list use AppendNil alone.
func AppendListHeader(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(ListExt)), uint32(n))
}

// AppendNil appends the empty list.
func AppendNil(dst []byte) []byte { return append(dst, byte(NilExt)) }
