package etf

import "encoding/binary"

// leaf returns the length of the term at the start of src if it is one that every call consists of: an atom in
// ASCII, a pid or reference of a node with such a name, a small integer, each whole and in its newest form.
// For all others it returns 0, and head finds out.
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

// smallAtom is leaf for an atom.
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
