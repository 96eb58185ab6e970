package etf

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// The functions in this file append a term, or the head of a term, and return the extended buffer. They do not
// allocate if dst has room.

// AppendAtom appends an atom in the form that the peer supports. It fails if the text is not UTF-8, has more than
// MaxAtomChars characters, or is not Latin-1 and the peer does not support UTF-8.
func AppendAtom(dst []byte, a Atom, caps Caps) ([]byte, error) {
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

// MustAppendAtom is like AppendAtom, for constants and atoms that AppendAtom has checked. It panics if
// AppendAtom fails.
func MustAppendAtom(dst []byte, a Atom, caps Caps) []byte {
	dst, err := AppendAtom(dst, a, caps)
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

// AppendStringExt appends a list of bytes: a STRING_EXT, or a LIST_EXT if it has more than 65,535.
func AppendStringExt[T ~string | ~[]byte](dst []byte, text T) []byte {
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

// AppendTupleHeader appends the head of a tuple. arity elements must follow.
func AppendTupleHeader(dst []byte, arity int) []byte {
	if arity <= math.MaxUint8 {
		return append(dst, byte(SmallTupleExt), byte(arity))
	}
	return binary.BigEndian.AppendUint32(append(dst, byte(LargeTupleExt)), uint32(arity))
}

// AppendListHeader appends the head of a list. n elements and the tail must follow, which AppendNil appends for a
// proper list. For an empty list use AppendNil alone.
func AppendListHeader(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(ListExt)), uint32(n))
}

// AppendNil appends the empty list.
func AppendNil(dst []byte) []byte { return append(dst, byte(NilExt)) }
