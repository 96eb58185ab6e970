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

var tagNames = [256]string{
	NewFloatExt:       "NEW_FLOAT_EXT",
	BitBinaryExt:      "BIT_BINARY_EXT",
	CompressedExt:     "COMPRESSED",
	AtomCacheRef:      "ATOM_CACHE_REF",
	NewPidExt:         "NEW_PID_EXT",
	NewPortExt:        "NEW_PORT_EXT",
	NewerReferenceExt: "NEWER_REFERENCE_EXT",
	SmallIntegerExt:   "SMALL_INTEGER_EXT",
	IntegerExt:        "INTEGER_EXT",
	FloatExt:          "FLOAT_EXT",
	AtomExt:           "ATOM_EXT",
	ReferenceExt:      "REFERENCE_EXT",
	PortExt:           "PORT_EXT",
	PidExt:            "PID_EXT",
	SmallTupleExt:     "SMALL_TUPLE_EXT",
	LargeTupleExt:     "LARGE_TUPLE_EXT",
	NilExt:            "NIL_EXT",
	StringExt:         "STRING_EXT",
	ListExt:           "LIST_EXT",
	BinaryExt:         "BINARY_EXT",
	SmallBigExt:       "SMALL_BIG_EXT",
	LargeBigExt:       "LARGE_BIG_EXT",
	NewFunExt:         "NEW_FUN_EXT",
	ExportExt:         "EXPORT_EXT",
	NewReferenceExt:   "NEW_REFERENCE_EXT",
	SmallAtomExt:      "SMALL_ATOM_EXT",
	MapExt:            "MAP_EXT",
	FunExt:            "FUN_EXT",
	AtomUTF8Ext:       "ATOM_UTF8_EXT",
	SmallAtomUTF8Ext:  "SMALL_ATOM_UTF8_EXT",
	V4PortExt:         "V4_PORT_EXT",
	LocalExt:          "LOCAL_EXT",
}

// String returns the tag's name in the documentation, or its number if it has none.
func (t Tag) String() string {
	if name := tagNames[t]; name != "" {
		return name
	}
	return "tag " + strconv.Itoa(int(t))
}

// IsAtom reports whether t is the tag of an atom, in any form.
func (t Tag) IsAtom() bool {
	switch t {
	case AtomExt, SmallAtomExt, AtomUTF8Ext, SmallAtomUTF8Ext:
		return true
	}
	return false
}

// IsPid reports whether t is the tag of a pid.
func (t Tag) IsPid() bool { return t == PidExt || t == NewPidExt }

// IsRef reports whether t is the tag of a reference.
func (t Tag) IsRef() bool {
	switch t {
	case ReferenceExt, NewReferenceExt, NewerReferenceExt:
		return true
	}
	return false
}

// IsInteger reports whether t is the tag of an integer.
func (t Tag) IsInteger() bool {
	switch t {
	case SmallIntegerExt, IntegerExt, SmallBigExt, LargeBigExt:
		return true
	}
	return false
}
