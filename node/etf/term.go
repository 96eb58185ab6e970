package etf

import "encoding/binary"

// Term is a decoded term, one of
//
//	Atom          an atom, true and false included
//	int64         an integer
//	*big.Int      an integer that an int64 cannot hold
//	float64       a float, never infinite and never NaN
//	[]byte        a binary
//	Bitstring     a binary whose last byte is not whole
//	String        a list of bytes that came as STRING_EXT
//	List          a list; the empty one is List(nil)
//	ImproperList  a list whose tail is not a list
//	Tuple         a tuple
//	Map           a map, in the order of the wire
//	Pid, Ref, Port, Fun, Export
//	Encoded       any of them, as external bytes; Append takes it, Decode never returns it
type Term any

// Encoded is a well-formed term in external bytes that every peer can read. It saves converting a large term
// through the other types.
type Encoded []byte

// Atom is the text of an atom in UTF-8.
type Atom string

// Bitstring is a binary in which only the upper Bits (1 to 7) of the last byte count; the others are zero.
type Bitstring struct {
	Bytes []byte
	Bits  uint8
}

// String is a list of bytes, which Erlang sends as STRING_EXT if short enough. To Erlang it equals a List of
// these integers.
type String string

// List is a proper list.
type List []Term

// ImproperList is a list that does not end in the empty list. It has at least one element, and its tail is not
// a list.
type ImproperList struct {
	Elements []Term
	Tail     Term
}

// Elements returns the elements of a proper list in any form, and whether t is one.
func Elements(t Term) ([]Term, bool) {
	switch t := t.(type) {
	case List:
		return t, true
	case String:
		elements := make([]Term, len(t))
		for i := range len(t) { // of bytes: those of text would be characters
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

// Pid, Ref, Port, Fun and Export hold the external bytes of the term as received, tag included. They can be
// compared and used as keys of Go maps, but the same pid may come in different forms from two peers. The
// methods return zero if the bytes are not such a term.
type (
	Pid    string // a process
	Ref    string // a reference
	Port   string // a port
	Fun    string // a fun and its environment
	Export string // fun M:F/A
)

// NewPid returns a pid as a NEW_PID_EXT. It checks nothing: Append refuses what is not a pid.
func NewPid(node Atom, id, serial, creation uint32) Pid {
	b := append(make([]byte, 0, 32), byte(NewPidExt))
	b = appendUTF8Atom(b, node)
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, serial)
	return Pid(binary.BigEndian.AppendUint32(b, creation))
}

// PidParts parses the external bytes of a pid: the name of its node; its ID, with the Serial in the upper 32
// bits; and its creation. It copies nothing.
func PidParts(pid []byte) (node []byte, id uint64, creation uint32) {
	i := takeApart(pid)
	return toUTF8(i.node, i.latin1), uint64(i.word(1))<<32 | uint64(i.word(0)), i.creation
}

// Node returns the name of the node the process is on.
func (p Pid) Node() Atom { return takeApart([]byte(p)).nodeAtom() }

// ID returns the first number of a pid.
func (p Pid) ID() uint32 { return takeApart([]byte(p)).word(0) }

// Serial returns the second number of a pid.
func (p Pid) Serial() uint32 { return takeApart([]byte(p)).word(1) }

// Creation tells apart the lives of a node of one name.
func (p Pid) Creation() uint32 { return takeApart([]byte(p)).creation }

// NewRef returns a reference, of 1 to MaxReferenceWords words, as a NEWER_REFERENCE_EXT. It checks nothing:
// Append refuses what is not a reference.
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

// Node returns the name of the node that made the reference.
func (r Ref) Node() Atom { return takeApart([]byte(r)).nodeAtom() }

// Creation tells apart the lives of a node of one name.
func (r Ref) Creation() uint32 { return takeApart([]byte(r)).creation }

// Words returns the numbers of a reference in the order of the wire, the reverse of the printed one.
func (r Ref) Words() []uint32 {
	id := takeApart([]byte(r))
	words := make([]uint32, len(id.words)/4)
	for i := range words {
		words[i] = id.word(i)
	}
	return words
}

// Node returns the name of the node the port is on.
func (p Port) Node() Atom { return takeApart([]byte(p)).nodeAtom() }

// ID returns the number of a port.
func (p Port) ID() uint64 { return takeApart([]byte(p)).number() }

// Creation tells apart the lives of a node of one name.
func (p Port) Creation() uint32 { return takeApart([]byte(p)).creation }

// String returns the text of the pid, as Format does.
func (p Pid) String() string { return string(Format(nil, p)) }

// String returns the text of the reference, as Format does.
func (r Ref) String() string { return string(Format(nil, r)) }

// String returns the text of the port, as Format does.
func (p Port) String() string { return string(Format(nil, p)) }

// String returns the text of the fun, as Format does.
func (f Fun) String() string { return string(Format(nil, f)) }

// String returns the text of the fun, as Format does.
func (e Export) String() string { return string(Format(nil, e)) }
