package etf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Limits of the format.
const (
	MaxAtomChars      = 255 // characters in an atom
	MaxReferenceWords = 5   // 4-byte words in a reference
)

// syntaxError is the error for bytes that are not the expected term.
type syntaxError struct {
	offset int    // offset of the term's tag in the source
	tag    Tag    // 0 at the end of the source
	reason string // such as "not an atom"
}

func (e *syntaxError) Error() string {
	if e.tag == 0 {
		return fmt.Sprintf("etf: byte %d: %s", e.offset, e.reason)
	}
	return fmt.Sprintf("etf: byte %d: %s: %s", e.offset, e.tag, e.reason)
}

// Reader is a cursor over the bytes of one or more terms. The first failure sticks: after it, the
// Reader is at the end of the source and every method returns a zero value. So a message can be
// parsed without a check at each step; [Reader.Finish] returns the error. Unless it fails, a Reader
// allocates only for Latin-1 atoms (see [Reader.Atom]) and for funs nested more than four deep.
type Reader struct {
	src  []byte
	off  int         // offset of the next byte
	at   int         // offset of the tag of the current term
	fail syntaxError // the first failure, or zero
}

// NewReader returns a Reader at the start of src.
func NewReader(src []byte) Reader { return Reader{src: src} }

// Err returns the first failure, or nil.
func (r *Reader) Err() error {
	if !r.failed() {
		return nil
	}
	e := r.fail
	return &e
}

// Finish returns the first failure, or an error if there are unread bytes.
func (r *Reader) Finish() error {
	if r.off < len(r.src) {
		r.at = r.off
		r.refuse("trailing bytes")
	}
	return r.Err()
}

// Rest returns the unread bytes.
func (r *Reader) Rest() []byte { return r.src[r.off:] }

// Version reads the version byte before a term.
func (r *Reader) Version() { r.expect(VersionMagic, "no version byte") }

// Peek returns the tag of the next term without reading it, or 0 at the end of the source.
func (r *Reader) Peek() Tag {
	if r.off >= len(r.src) {
		return 0
	}
	return Tag(r.src[r.off])
}

// Tuple reads the header of a tuple and returns its arity. The elements follow.
func (r *Reader) Tuple() int {
	tag := r.next()
	if tag != SmallTupleExt && tag != LargeTupleExt {
		r.refuse("not a tuple")
		return 0
	}
	return r.tuple(tag)
}

// ListHeader reads the header of a LIST_EXT and returns the number of elements. The elements follow, and then the
// tail, which is NIL_EXT in a proper list. The empty list and lists of bytes have other tags.
func (r *Reader) ListHeader() int {
	r.expect(ListExt, "not a list")
	return r.list()
}

// Nil reads the empty list.
func (r *Reader) Nil() { r.expect(NilExt, "not the empty list") }

// Map reads the header of a map and returns the number of pairs. The pairs follow, each a key and a value.
func (r *Reader) Map() int {
	r.expect(MapExt, "not a map")
	return r.pairs()
}

// Binary reads a binary and returns its bytes, a part of the source.
func (r *Reader) Binary() []byte {
	r.expect(BinaryExt, "not a binary")
	return r.take(int(r.uint32()))
}

// StringExt reads a STRING_EXT and returns its bytes, a part of the source.
func (r *Reader) StringExt() []byte {
	r.expect(StringExt, "not a string")
	return r.take(r.uint16())
}

// Atom reads an atom and returns its text in UTF-8. The text is a part of the source, unless it is converted from
// Latin-1.
func (r *Reader) Atom() []byte { return r.atom(r.next()) }

// Int reads an integer. It fails if an int64 cannot hold it.
func (r *Reader) Int() int64 {
	magnitude, negative := r.integer()
	switch {
	case negative && magnitude <= -math.MinInt64:
		return -int64(magnitude)
	case magnitude <= math.MaxInt64:
		return int64(magnitude)
	}
	r.refuse("integer out of range")
	return 0
}

// Uint64 reads an integer. It fails if a uint64 cannot hold it.
func (r *Reader) Uint64() uint64 {
	magnitude, negative := r.integer()
	if negative && magnitude != 0 {
		r.refuse("integer out of range")
		return 0
	}
	return magnitude
}

// Pid reads a pid and returns its external bytes, a part of the source. Pid(r.Pid()) is a copy.
func (r *Reader) Pid() []byte { return r.identity(r.Peek().IsPid(), "not a pid") }

// Ref reads a reference and returns its external bytes, a part of the source. Ref(r.Ref()) is a copy.
func (r *Reader) Ref() []byte { return r.identity(r.Peek().IsRef(), "not a reference") }

func (r *Reader) identity(expected bool, reason string) []byte {
	if expected {
		return r.Raw()
	}
	r.next()
	r.refuse(reason)
	return nil
}

func (r *Reader) failed() bool { return r.fail.reason != "" }

// refuse records a failure at the current term, unless there was an earlier one, and moves to the end of the
// source.
func (r *Reader) refuse(reason string) {
	if r.failed() {
		return
	}
	r.fail = syntaxError{offset: r.at, reason: reason}
	if r.at < len(r.src) {
		r.fail.tag = Tag(r.src[r.at])
	}
	r.src = r.src[:r.off]
}

// next reads a tag.
func (r *Reader) next() Tag {
	r.at = r.off
	return Tag(r.uint8())
}

// expect reads a tag. It fails with reason if that is not the expected tag.
func (r *Reader) expect(tag Tag, reason string) {
	if r.next() != tag {
		r.refuse(reason)
	}
}

// take reads n bytes.
func (r *Reader) take(n int) []byte {
	if n < 0 || n > len(r.src)-r.off {
		r.refuse("truncated")
		return nil
	}
	start := r.off
	r.off += n
	return r.src[start:r.off:r.off]
}

func (r *Reader) uint8() byte {
	if r.off == len(r.src) {
		r.refuse("truncated")
		return 0
	}
	b := r.src[r.off]
	r.off++
	return b
}

func (r *Reader) uint16() int {
	if b := r.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *Reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// count returns n. It fails unless the remaining bytes can hold n*each + more terms of at least one byte.
func (r *Reader) count(n uint32, each, more uint64) int {
	if uint64(n)*each+more > uint64(len(r.src)-r.off) {
		r.refuse("count exceeds the bytes left")
		return 0
	}
	return int(n)
}
