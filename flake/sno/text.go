package sno

import (
	"encoding/binary"
	"slices"
)

// EncodedLen is the length of an id's text.
const EncodedLen = 16

// The text is two times 8 digits of 5 bits. The digits are two stretches of
// ASCII, so 8 of them are made at once, a byte of a word each.
const (
	each    = 0x0101010101010101
	digit0  = '2' * each
	letter0 = 'a' - 8 - '2' // what a letter is further on than a digit is
)

// spread gives 40 bits as 8 bytes of 5.
func spread(v uint64) uint64 {
	v = v>>20<<32 | v&0xFFFFF
	v = v&0x000FFC00000FFC00<<6 | v&0x000003FF000003FF
	return v&0x03E003E003E003E0<<3 | v&0x001F001F001F001F
}

// gather is the reverse.
func gather(v uint64) uint64 {
	v = v>>3&0x03E003E003E003E0 | v&0x001F001F001F001F
	v = v>>6&0x000FFC00000FFC00 | v&0x000003FF000003FF
	return v>>32<<20 | v&0xFFFFF
}

// ascii gives 8 digits for their values.
func ascii(values uint64) uint64 {
	letters := (values + (128-8)*each) >> 7 & each
	return values + digit0 + letters*letter0
}

// values is the reverse; not ok if some are no digits. What is none gives some
// value all the same, but not that value's digit.
func values(text uint64) (values uint64, ok bool) {
	letters := text >> 6 & each
	values = (text - digit0 - letters*letter0) & (31 * each)
	return values, ascii(values) == text
}

func (id *ID) encode(text *[EncodedLen]byte) {
	hi, lo := binary.BigEndian.Uint64(id[:8]), uint64(binary.BigEndian.Uint16(id[8:]))
	binary.BigEndian.PutUint64(text[:8], ascii(spread(hi>>24)))
	binary.BigEndian.PutUint64(text[8:], ascii(spread(hi&0xFFFFFF<<16|lo)))
}

// String gives the id's text, 16 digits 2-9a-x. Texts sort as ids do.
func (id ID) String() string {
	var text [EncodedLen]byte
	id.encode(&text)
	return string(text[:])
}

// AppendText appends what [ID.String] gives. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	n := len(dst)
	dst = slices.Grow(dst, EncodedLen)[:n+EncodedLen]
	id.encode((*[EncodedLen]byte)(dst[n:]))
	return dst, nil
}

// Parse reads what [ID.String] gives. Anything else is a [*ParseError].
func Parse(text string) (id ID, err error) {
	if len(text) != EncodedLen || !id.decode(load(text[:8]), load(text[8:])) {
		return id, notAnID(text)
	}
	return id, nil
}

// MustParse is [Parse] that panics where that returns an error: for ids that are
// written in a program.
func MustParse(text string) ID {
	id, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return id
}

// load is [binary.BigEndian].Uint64 of a string.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[7]) | uint64(s[6])<<8 | uint64(s[5])<<16 | uint64(s[4])<<24 |
		uint64(s[3])<<32 | uint64(s[2])<<40 | uint64(s[1])<<48 | uint64(s[0])<<56
}

// decode reads two times 8 digits; it leaves the id as it was if some are none.
func (id *ID) decode(first, second uint64) bool {
	hi, ok1 := values(first)
	lo, ok2 := values(second)
	if !ok1 || !ok2 {
		return false
	}
	low := gather(lo)
	binary.BigEndian.PutUint64(id[:8], gather(hi)<<24|low>>16)
	binary.BigEndian.PutUint16(id[8:], uint16(low))
	return true
}

// notAnID gives the error for a text that is none.
func notAnID[T string | []byte](text T) error {
	if len(text) != EncodedLen {
		return errorf(text, 0, "%d bytes where %d digits belong", len(text), EncodedLen)
	}
	at := 0
	for ; ; at++ {
		if c := text[at]; (c < '2' || c > '9') && (c < 'a' || c > 'x') {
			break
		}
	}
	return errorf(text, at, "%q, none of the digits 2-9a-x,", text[at])
}
