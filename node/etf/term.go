// Package etf reads and writes the Erlang External Term Format, in which Erlang nodes send terms:
// https://www.erlang.org/doc/apps/erts/erl_ext_dist.html
//
// Start at [Reader], a bounds-checked cursor that parses a message without allocating, or at [Decode] and [Append],
// which convert the bytes of one term to a [Term] and back.
//
// [FormatRaw] and [Format] print a term on one line, for logs, and [Pretty] in lines, like the Erlang shell.
//
// Compressed terms, atom cache references (of distribution headers) and LOCAL_EXT are refused. All
// other tags of that document can be read, including old ones. The [Caps] of a peer decide which
// tags are written. A map may contain equal keys.
//
// Input may be hostile. Any input results in a value or an error. A length is refused unless
// the remaining bytes can hold it. No function recurses deeper than [MaxDepth].
//
// The slices that a Reader returns are parts of its source. A Term owns its bytes. The Append functions extend dst
// and do not keep it.
package etf

import "encoding/binary"

// Term is a decoded term, one of
//
//	Atom          an atom, true and false included
//	int64         an integer
//	*big.Int      an integer that an int64 cannot hold
//	float64       a float, never infinite or NaN
//	[]byte        a binary
//	Bitstring     a binary whose last byte has fewer than 8 bits
//	String        a list of bytes received as STRING_EXT
//	List          a proper list; the empty list is List(nil)
//	ImproperList  a list whose tail is not a list
//	Tuple         a tuple
//	Map           a map, in the order received
//	Pid, Ref, Port, Fun, Export
//	Encoded       any term, already encoded; Append accepts it, Decode never returns it
type Term any

// Encoded is a well-formed term that is already encoded, in a form that every peer can read. It
// saves callers of Append from building a large term out of the other types.
type Encoded []byte

// Atom is the text of an atom in UTF-8.
type Atom string

// Bitstring is a binary whose last byte has only Bits (1 to 7) bits. They are the upper bits of the
// byte; the other bits are zero.
type Bitstring struct {
	Bytes []byte
	Bits  uint8
}

// String is a list of bytes, which Erlang sends as STRING_EXT if it is short enough. In Erlang it equals a List of
// the same integers.
type String string

// List is a proper list.
type List []Term

// ImproperList is a list that does not end with the empty list. It has at least one element, and its tail is not a
// list.
type ImproperList struct {
	Elements []Term
	Tail     Term
}

// Elements returns the elements of a proper list in any form, and reports whether t is a proper list.
func Elements(t Term) ([]Term, bool) {
	switch t := t.(type) {
	case List:
		return t, true
	case String:
		elements := make([]Term, len(t))
		for i := range len(t) { // bytes, not characters
			elements[i] = int64(t[i])
		}
		return elements, true
	}
	return nil, false
}

// Tuple is a tuple.
type Tuple []Term

// Map is a map. Its keys may be any terms.
type Map []Pair

// Pair is a key of a Map and its value.
type Pair struct{ Key, Value Term }

// Pid, Ref, Port, Fun and Export are the external bytes of the term as received, tag included. They can be compared and
// used as keys of Go maps, but two peers may send the same pid in different forms. The methods return zero values if
// the bytes are not such a term.
type (
	Pid    string // a process
	Ref    string // a reference
	Port   string // a port
	Fun    string // a fun and its environment
	Export string // fun M:F/A
)

// NewPid returns a pid as a NEW_PID_EXT. It does not check its arguments: Append refuses a malformed pid.
func NewPid(node Atom, id, serial, creation uint32) Pid {
	b := append(make([]byte, 0, 32), byte(NewPidExt))
	b = appendUTF8Atom(b, node)
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, serial)
	return Pid(binary.BigEndian.AppendUint32(b, creation))
}

// PidParts parses the external bytes of a pid. It returns the name of the node (a subslice of pid, or a
// copy if it was converted from Latin-1), the ID with the Serial in the upper 32 bits, and the creation.
func PidParts(pid []byte) (node []byte, id uint64, creation uint32) {
	i := parseIdentifier(pid)
	return i.node, uint64(i.word(1))<<32 | uint64(i.word(0)), i.creation
}

// Node returns the name of the process's node.
func (p Pid) Node() Atom { return Atom(parseIdentifier([]byte(p)).node) }

// Creation returns the creation of the node, which identifies one run of the node.
func (p Pid) Creation() uint32 { return parseIdentifier([]byte(p)).creation }

// NewRef returns a reference of 1 to MaxReferenceWords words as a NEWER_REFERENCE_EXT. It does not check its arguments:
// Append refuses a malformed reference.
func NewRef(node Atom, creation uint32, words ...uint32) Ref {
	b := append(make([]byte, 0, 48), byte(NewerReferenceExt))
	b = binary.BigEndian.AppendUint16(b, uint16(len(words)))
	b = appendUTF8Atom(b, node)
	b = binary.BigEndian.AppendUint32(b, creation)
	for _, word := range words {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return Ref(b)
}

// Words returns the numbers of a reference in the order received, the reverse of the printed order.
func (r Ref) Words() []uint32 {
	id := parseIdentifier([]byte(r))
	words := make([]uint32, len(id.words)/4)
	for i := range words {
		words[i] = id.word(i)
	}
	return words
}

// String returns the text of the pid, as Format does.
func (p Pid) String() string { return string(Format(nil, p)) }

// String returns the text of the reference, as Format does.
func (r Ref) String() string { return string(Format(nil, r)) }

// Parts returns the module, the function and the arity of the fun.
func (e Export) Parts() (module, function Atom, arity int) {
	r := NewReader([]byte(e))
	if check(string(e), ExportExt) != nil {
		return "", "", 0
	}
	r.next()
	return Atom(r.Atom()), Atom(r.Atom()), int(r.Int())
}
