package etf

import (
	"encoding/binary"
	"unicode/utf8"
)

// identifier is a decoded pid, port or reference.
type identifier struct {
	tag      Tag
	node     []byte // text of the atom
	latin1   bool   // node is Latin-1, not UTF-8
	words    []byte // pid: ID, Serial; port: ID; reference: its words
	creation uint32
}

// identifier reads a pid, port or reference after its tag.
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

// takeApart reads a pid, port or reference from its external bytes. For other bytes it returns the zero value.
func takeApart(external []byte) identifier {
	r := NewReader(external)
	id := r.identifier(r.next())
	if r.Finish() != nil {
		return identifier{}
	}
	return id
}

func (id identifier) nodeAtom() Atom { return Atom(toUTF8(id.node, id.latin1)) }

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

// toUTF8 returns text in UTF-8. latin1 is whether text is Latin-1.
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

// fun is a fun without its free variables.
type fun struct {
	module      []byte
	latin1      bool
	index, uniq int64 // OldIndex and OldUniq, which Erlang prints
	free        int   // number of free variables, which follow
	end         int   // offset of its end according to Size, 0 for a FUN_EXT
}

// fun reads a fun after its tag, up to its free variables.
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

// export reads an EXPORT_EXT after its tag.
func (r *Reader) export() {
	r.inner()
	r.inner()
	r.expect(SmallIntegerExt, "arity is not a SMALL_INTEGER_EXT")
	r.uint8()
}
