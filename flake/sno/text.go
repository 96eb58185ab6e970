package sno

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"slices"

	"github.com/flake-go/flake/flake/internal/digits"
)

// The text is two words of 8 digits, each of 5 bits. The digits are two ranges of ASCII, so the
// 8 digits of a word are computed together, each in one byte.
const (
	each    = 0x0101010101010101
	digit0  = '2' * each
	letter0 = 'a' - 8 - '2' // added for letters
)

// spread returns 40 bits as 8 bytes of 5 bits.
func spread(v uint64) uint64 {
	v = v>>20<<32 | v&0xFFFFF
	v = v&0x000FFC00000FFC00<<6 | v&0x000003FF000003FF
	return v&0x03E003E003E003E0<<3 | v&0x001F001F001F001F
}

// gather is the reverse of spread.
func gather(v uint64) uint64 {
	v = v>>3&0x03E003E003E003E0 | v&0x001F001F001F001F
	v = v>>6&0x000FFC00000FFC00 | v&0x000003FF000003FF
	return v>>32<<20 | v&0xFFFFF
}

// ascii returns the 8 digits of 8 values.
func ascii(values uint64) uint64 {
	letters := (values + (128-8)*each) >> 7 & each
	return values + digit0 + letters*letter0
}

// values is the reverse of ascii, for two words. ok is false if a byte is not a digit: then its value
// is above 31, or either the byte or the value is a letter's, but not both.
func values(text1, text2 uint64) (values1, values2 uint64, ok bool) {
	letters1, letters2 := text1>>6&each, text2>>6&each
	values1 = text1 - digit0 - letters1*letter0
	values2 = text2 - digit0 - letters2*letter0
	wrong1 := (values1+(128-8)*each)>>7 ^ letters1
	wrong2 := (values2+(128-8)*each)>>7 ^ letters2
	return values1, values2, (values1|values2)&(0xE0*each)|(wrong1|wrong2)&each == 0
}

func (id *ID) encode(text *[SizeEncoded]byte) {
	hi, lo := binary.BigEndian.Uint64(id[:8]), uint64(binary.BigEndian.Uint16(id[8:]))
	binary.BigEndian.PutUint64(text[:8], ascii(spread(hi>>24)))
	binary.BigEndian.PutUint64(text[8:], ascii(spread(hi&0xFFFFFF<<16|lo)))
}

var size = digits.NewSize(80)

// Width returns the length of [ID.Padded] in a base from 2 to 62: 80 in base 2, 20 in base 16, 14 in base 62.
// For any other base it returns 0.
func Width(base int) int { return size.Width(base) }

// String returns the id's canonical text, 16 digits 2-9a-x. These strings sort as the ids do.
func (id ID) String() string {
	var text [SizeEncoded]byte
	id.encode(&text)
	return string(text[:])
}

// AppendText appends to dst what [ID.String] returns. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	n := len(dst)
	dst = slices.Grow(dst, SizeEncoded)[:n+SizeEncoded]
	id.encode((*[SizeEncoded]byte)(dst[n:]))
	return dst, nil
}

// Text returns the id as a number in a base from 2 to 62, without leading zeros, like [flake.ID.Text].
func (id ID) Text(base int) (string, error) {
	hi, lo := id.words()
	return digits.Text(hi, lo, base)
}

// AppendBase appends to dst what [ID.Text] returns. If it fails, it returns dst unchanged.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	hi, lo := id.words()
	return digits.Append(dst, hi, lo, base)
}

// Padded returns the id as a number in a base from 2 to 62, padded with leading zeros to [Width]
// digits, like [flake.ID.Padded].
func (id ID) Padded(base int) (string, error) {
	hi, lo := id.words()
	return size.Padded(hi, lo, base)
}

// Parse parses what [ID.String] returns. For any other text it returns a [*flake.ParseError].
func Parse(text string) (id ID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// ParseBase parses what [ID.Text] and [ID.Padded] return, like [flake.ParseBase].
func ParseBase(text string, base int) (id ID, err error) {
	hi, lo, err := size.Parse(text, base)
	binary.BigEndian.PutUint16(id[:2], uint16(hi))
	binary.BigEndian.PutUint64(id[2:], lo)
	return id, err
}

// MustParse is like [Parse] but panics on an error. It is for ids in source code.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

// In JSON, XML and configuration an id is the text that String returns; in binary form and in
// a database it is the 10 bytes.

// MarshalText returns what [ID.String] does. encoding/json calls it for values and map keys.
// The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts exactly what [ID.MarshalText] returns. For any other text it returns a
// [*flake.ParseError] and leaves the id unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != SizeEncoded {
		return wrong(text)
	}
	first, second, ok := values(binary.BigEndian.Uint64(text[:8]), binary.BigEndian.Uint64(text[8:]))
	if !ok {
		return wrong(text)
	}
	low := gather(second)
	binary.BigEndian.PutUint64(id[:8], gather(first)<<24|low>>16)
	binary.BigEndian.PutUint16(id[8:], uint16(low))
	return nil
}

// wrong returns the error for a text that is not an id.
func wrong(text []byte) error {
	if len(text) != SizeEncoded {
		return digits.Errorf(text, 0, "%d bytes; must be %d digits", len(text), SizeEncoded)
	}
	at := len(text) - len(bytes.TrimLeft(text, "23456789abcdefghijklmnopqrstuvwx"))
	return digits.Errorf(text, at, "%q is not one of the digits 2-9a-x", text[at])
}

// MarshalBinary returns the 10 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary accepts 10 bytes. For any other length it returns a [*flake.ParseError] and
// leaves the id unchanged.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return digits.Errorf(data, 0, "%d bytes; must be 10", len(data))
	}
	copy(id[:], data)
	return nil
}

// Value implements [driver.Valuer]. It returns the 10 bytes, for a column of type bytea, which
// then sorts as the ids do.
func (id ID) Value() (driver.Value, error) { return id[:], nil }

// Scan implements sql.Scanner. It accepts 10 bytes, or the text as a string or bytes. NULL is
// an error: scan a nullable column into a [database/sql.Null] of ID. If Scan fails, the id is
// unchanged.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case []byte:
		if len(src) == len(id) {
			return id.UnmarshalBinary(src)
		}
		return id.UnmarshalText(src)
	case string:
		return id.UnmarshalText([]byte(src))
	}
	return &digits.ScanError{Value: src}
}
