package etf

import "strconv"

// VersionMagic is the version byte before an outermost term.
const VersionMagic = 131

// Tag is the first byte of a term. It determines the kind of the term and its layout.
type Tag byte

// The tags, with the names and numbers of the documentation. Integers are big-endian. The number after a field is its
// size in bytes; a field without a size is a term, and Node, Module and Function are atoms.
const (
	NewFloatExt       Tag = 70  // IEEE float:8
	BitBinaryExt      Tag = 77  // Len:4, Bits:1 (how many are used in the last byte, from the top), Data:Len
	CompressedExt     Tag = 80  // refused
	AtomCacheRef      Tag = 82  // refused
	NewPidExt         Tag = 88  // Node, ID:4, Serial:4, Creation:4
	NewPortExt        Tag = 89  // Node, ID:4, Creation:4
	NewerReferenceExt Tag = 90  // Len:2, Node, Creation:4, ID:4*Len
	SmallIntegerExt   Tag = 97  // unsigned:1
	IntegerExt        Tag = 98  // signed:4
	FloatExt          Tag = 99  // text in the format "%.20e", padded with zero bytes:31
	AtomExt           Tag = 100 // Len:2, Latin-1:Len
	ReferenceExt      Tag = 101 // Node, ID:4, Creation:1
	PortExt           Tag = 102 // Node, ID:4, Creation:1
	PidExt            Tag = 103 // Node, ID:4, Serial:4, Creation:1
	SmallTupleExt     Tag = 104 // Arity:1, elements
	LargeTupleExt     Tag = 105 // Arity:4, elements
	NilExt            Tag = 106 // the empty list
	StringExt         Tag = 107 // Len:2, bytes:Len; a list of small integers
	ListExt           Tag = 108 // Len:4, Len elements, tail
	BinaryExt         Tag = 109 // Len:4, Data:Len
	SmallBigExt       Tag = 110 // Len:1, Sign:1, magnitude, least significant byte first:Len
	LargeBigExt       Tag = 111 // Len:4, Sign:1, magnitude, least significant byte first:Len
	NewFunExt         Tag = 112 // Size:4, Arity:1, Uniq:16, Index:4, NumFree:4, Module, OldIndex, OldUniq, Pid, Free Vars
	ExportExt         Tag = 113 // Module, Function, Arity (SMALL_INTEGER_EXT)
	NewReferenceExt   Tag = 114 // Len:2, Node, Creation:1, ID:4*Len
	SmallAtomExt      Tag = 115 // Len:1, Latin-1:Len
	MapExt            Tag = 116 // Arity:4, Arity pairs of key and value
	FunExt            Tag = 117 // NumFree:4, Pid, Module, Index, Uniq, Free Vars
	AtomUTF8Ext       Tag = 118 // Len:2, UTF-8:Len
	SmallAtomUTF8Ext  Tag = 119 // Len:1, UTF-8:Len
	V4PortExt         Tag = 120 // Node, ID:8, Creation:4
	LocalExt          Tag = 121 // refused
)

// forms describes the tags.
var forms = [256]struct {
	name string // in the documentation
	kind kind   // of its terms, if terms of that kind have several tags

	// The layout of pids, ports and references. In a reference that begins with the number of its words, the words
	// follow the creation.
	words    int // number of words before the creation; 0 if they follow it
	creation int // size in bytes
	old      Tag // the tag of the form with a creation of 1 byte
}{
	NewFloatExt:       {name: "NEW_FLOAT_EXT"},
	BitBinaryExt:      {name: "BIT_BINARY_EXT"},
	CompressedExt:     {name: "COMPRESSED"},
	AtomCacheRef:      {name: "ATOM_CACHE_REF"},
	NewPidExt:         {"NEW_PID_EXT", aPid, 2, 4, PidExt},
	NewPortExt:        {"NEW_PORT_EXT", 0, 1, 4, PortExt},
	NewerReferenceExt: {"NEWER_REFERENCE_EXT", aRef, 0, 4, NewReferenceExt},
	SmallIntegerExt:   {name: "SMALL_INTEGER_EXT", kind: anInteger},
	IntegerExt:        {name: "INTEGER_EXT", kind: anInteger},
	FloatExt:          {name: "FLOAT_EXT"},
	AtomExt:           {name: "ATOM_EXT", kind: anAtom},
	ReferenceExt:      {"REFERENCE_EXT", aRef, 1, 1, ReferenceExt},
	PortExt:           {"PORT_EXT", 0, 1, 1, PortExt},
	PidExt:            {"PID_EXT", aPid, 2, 1, PidExt},
	SmallTupleExt:     {name: "SMALL_TUPLE_EXT"},
	LargeTupleExt:     {name: "LARGE_TUPLE_EXT"},
	NilExt:            {name: "NIL_EXT"},
	StringExt:         {name: "STRING_EXT"},
	ListExt:           {name: "LIST_EXT"},
	BinaryExt:         {name: "BINARY_EXT"},
	SmallBigExt:       {name: "SMALL_BIG_EXT", kind: anInteger},
	LargeBigExt:       {name: "LARGE_BIG_EXT", kind: anInteger},
	NewFunExt:         {name: "NEW_FUN_EXT"},
	ExportExt:         {name: "EXPORT_EXT"},
	NewReferenceExt:   {"NEW_REFERENCE_EXT", aRef, 0, 1, NewReferenceExt},
	SmallAtomExt:      {name: "SMALL_ATOM_EXT", kind: anAtom},
	MapExt:            {name: "MAP_EXT"},
	FunExt:            {name: "FUN_EXT"},
	AtomUTF8Ext:       {name: "ATOM_UTF8_EXT", kind: anAtom},
	SmallAtomUTF8Ext:  {name: "SMALL_ATOM_UTF8_EXT", kind: anAtom},
	V4PortExt:         {"V4_PORT_EXT", 0, 2, 4, PortExt},
	LocalExt:          {name: "LOCAL_EXT"},
}

type kind uint8

const (
	anAtom    kind = 1
	aPid      kind = 2
	aRef      kind = 3
	anInteger kind = 4
)

// IsAtom reports whether t is the tag of an atom, in any form.
func (t Tag) IsAtom() bool { return forms[t].kind == anAtom }

// IsPid reports whether t is the tag of a pid.
func (t Tag) IsPid() bool { return forms[t].kind == aPid }

// IsRef reports whether t is the tag of a reference.
func (t Tag) IsRef() bool { return forms[t].kind == aRef }

// IsInteger reports whether t is the tag of an integer.
func (t Tag) IsInteger() bool { return forms[t].kind == anInteger }

// String returns the tag's name in the documentation, or its number if it has none.
func (t Tag) String() string {
	if name := forms[t].name; name != "" {
		return name
	}
	return "tag " + strconv.Itoa(int(t))
}
