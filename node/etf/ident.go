package etf

import (
	"encoding/binary"
	"unicode/utf8"
)

// identifier is a decoded pid, port or reference.
type identifier struct {
	tag      Tag
	node     []byte // text of the atom
	latin1   bool   // it is not yet UTF-8
	words    []byte // pid: ID, Serial; port: ID; reference: its words
	creation uint32
}

// identifier reads what comes after the tag of a pid, port or reference.
func (r *Reader) identifier(tag Tag) identifier {
	id := identifier{tag: tag}
	size := 4
	switch tag {
	case PidExt, NewPidExt, V4PortExt:
		size = 8
	case NewReferenceExt, NewerReferenceExt:
		size = 4 * r.uint16()
		if size == 0 || size > 4*MaxReferenceWords {
			r.refuse("reference is not of 1 to 5 words")
		}
	}
	id.node, id.latin1 = r.inner()
	switch tag {
	case PidExt, PortExt, ReferenceExt:
		id.words = r.take(size)
		id.creation = uint32(r.uint8())
	case NewReferenceExt:
		id.creation = uint32(r.uint8())
		id.words = r.take(size)
	case NewPidExt, NewPortExt, V4PortExt:
		id.words = r.take(size)
		id.creation = r.uint32()
	case NewerReferenceExt:
		id.creation = r.uint32()
		id.words = r.take(size)
	}
	return id
}

// takeApart reads a pid, port or reference from its external bytes; for others it returns the zero value.
func takeApart(external []byte) identifier {
	r := NewReader(external)
	id := r.identifier(r.next())
	if r.Finish() != nil {
		return identifier{}
	}
	return id
}

func (id identifier) nodeAtom() Atom { return Atom(toUTF8(id.node, id.latin1)) }

// word returns the i-th 4 bytes, or 0 if there are too few.
func (id identifier) word(i int) uint32 {
	if len(id.words) < 4*i+4 {
		return 0
	}
	return binary.BigEndian.Uint32(id.words[4*i:])
}

// number returns all words as one number: the ID of a port.
func (id identifier) number() (n uint64) {
	for _, b := range id.words {
		n = n<<8 | uint64(b)
	}
	return n
}

// toUTF8 returns text as it is, or converted if it is Latin-1.
func toUTF8(text []byte, latin1 bool) []byte {
	if !latin1 {
		return text
	}
	converted := make([]byte, 0, 2*len(text))
	for _, c := range text {
		converted = utf8.AppendRune(converted, rune(c))
	}
	return converted
}

// fun is the head of a fun: all but its free variables.
type fun struct {
	module      []byte
	latin1      bool
	index, uniq int64 // the old ones, by which Erlang prints a fun
	free        int   // number of free variables, which follow
	end         int   // where it ends by its Size, 0 for a FUN_EXT
}

// fun reads what comes after the tag of a fun, up to its free variables.
func (r *Reader) fun(tag Tag) (f fun) {
	start := r.at
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
	f.module, f.latin1 = r.inner()
	f.index = r.Int()
	f.uniq = r.Int()
	if tag == NewFunExt {
		r.Pid()
	}
	r.at = start
	return f
}

// export reads what comes after the tag of an EXPORT_EXT.
func (r *Reader) export() {
	r.inner()
	r.inner()
	r.expect(SmallIntegerExt, "arity is not a SMALL_INTEGER_EXT")
	r.uint8()
}
