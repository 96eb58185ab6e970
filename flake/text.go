package flake

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/flake-go/flake/flake/internal/digits"
)

// MinBase and MaxBase are the lowest and the highest base of an id's text.
const (
	MinBase = digits.MinBase
	MaxBase = digits.MaxBase
)

var size = digits.NewSize(128)

// Width returns the length of [ID.Padded] in a base from 2 to 62: 128 in base 2, 32 in base 16, 22 in base 62.
// For any other base it returns 0.
func Width(base int) int { return size.Width(base) }

// String returns the id as 22 digits in base 62. These strings sort bytewise in the order of the
// ids. For case-insensitive database columns, which treat different strings as equal, use
// [ID.UUID].
func (id ID) String() string {
	var buf [22]byte
	text, _ := id.AppendText(buf[:0])
	return string(text)
}

// AppendText appends to dst what [ID.String] returns. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	hi, lo := id.words()
	return size.AppendPadded(dst, hi, lo, MaxBase)
}

// Text returns the id as a number in a base from 2 to 62, with digits 0-9A-Za-z in that order,
// without leading zeros, as in boundary/flake's reply to {get, Base}. For any other base it
// returns [ErrBase]. These strings do not sort as the ids do; those of [ID.Padded] do.
func (id ID) Text(base int) (string, error) {
	hi, lo := id.words()
	return digits.Text(hi, lo, base)
}

// AppendBase appends to dst what [ID.Text] returns. If it fails, it returns dst unchanged.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	hi, lo := id.words()
	return digits.Append(dst, hi, lo, base)
}

// Padded returns the id in a base from 2 to 62, padded with leading zeros to [Width] digits.
// In each base, these strings sort bytewise in the order of the ids. For any other base it
// returns [ErrBase].
func (id ID) Padded(base int) (string, error) {
	hi, lo := id.words()
	return size.Padded(hi, lo, base)
}

// ParseError is the error, in all formats, for a string that is not an id.
type ParseError struct {
	Text string // the text, cut short if it is longer than any id
	At   int    // index of the first wrong byte
	What string // what is wrong there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("flake: %s is not an id: %s (byte %d)", digits.Quote(e.Text), e.What, e.At)
}

func init() {
	digits.NewParseError = func(text string, at int, what string) error { return &ParseError{text, at, what} }
}

// ScanError is the error of Scan, in all formats, for a database value whose type cannot hold
// an id. Its field Value is that value. For wrong bytes or text, Scan returns a [*ParseError].
type ScanError = digits.ScanError

// Parse parses an id. It recognizes the text form by its length:
//
//	0000AboKHPfE7cAx9OrCYZ                22 digits of base 62, as from [ID.String]
//	0000018b-cfe5-6800-0200-000000010007  as from [ID.UUID]; also in braces, or after urn:uuid:
//	0000018bcfe568000200000000010007      32 hexadecimal digits
//	0x0000018bcfe568000200000000010007    with 0x, or with \x as psql shows bytea
//
// Hexadecimal digits may be in either case. For any other text, Parse returns a [*ParseError].
// Strings in other bases or without leading zeros are ambiguous: use [ParseBase] for them.
func Parse(text string) (id ID, err error) {
	switch {
	case len(text) == digits.UUIDLen:
		hi, lo, ok := digits.ParseUUID(text)
		if !ok {
			return id, notUUID(text)
		}
		id.set(hi, lo)
		return id, nil
	case len(text) == hexLen+2 && (text[:2] == "0x" || text[:2] == `\x`):
		return parsed(digits.ParseHex(text, 2))
	case len(text) == hexLen:
		return parsed(digits.ParseHex(text, 0))
	case len(text) == Width(MaxBase):
		return ParseBase(text, MaxBase)
	}
	if bare, at := digits.BareUUID(text); at > 0 {
		return Parse(bare)
	}
	return ID{}, digits.Errorf(text, 0,
		"%d bytes; must be %d digits of base 62, a %d-character UUID, or %d hexadecimal digits%s",
		len(text), Width(MaxBase), digits.UUIDLen, hexLen, unpadded(text))
}

const hexLen = 32

// unpadded returns advice for an error if [ID.Text] may have returned text; otherwise it
// returns "".
func unpadded(text string) string {
	if _, err := ParseBase(text, MaxBase); err != nil || len(text) < 17 { // ids since 1971 have at least 17 digits
		return ""
	}
	return "; ParseBase(text, 62) reads digits without leading zeros, as Text(62) and {get, 62} return them"
}

// ParseBase parses an id in a base from 2 to 62, of at most [Width] digits, with or without
// leading zeros: the reverse of [ID.Text] and [ID.Padded]. Upper and lower case are different
// digits in every base. It fails with [ErrBase] for any other base, and with a [*ParseError]
// if the text is empty, too long, above the highest id, or contains anything but digits of the
// base.
func ParseBase(text string, base int) (id ID, err error) {
	hi, lo, err := size.Parse(text, base)
	id.set(hi, lo)
	return id, err
}

// MustParse is like [Parse] but panics on an error. It is for ids in source code.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

func parsed(hi, lo uint64, err error) (ID, error) { return fromWords(hi, lo), err }

// In JSON, XML and configuration an id is the text that String returns; in binary form it is
// the 16 bytes; in a database it is the text that UUID returns.

// MarshalText returns what [ID.String] does, 22 digits of base 62. encoding/json calls it for
// values and map keys. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts exactly what [ID.MarshalText] returns. For any other text it returns a
// [*ParseError] and leaves the id unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != Width(MaxBase) {
		return digits.Errorf(text, 0, "%d bytes; must be %d digits of base 62%s",
			len(text), Width(MaxBase), unpadded(string(text[:min(len(text), Width(MaxBase)+1)])))
	}
	return id.keep(ParseBase(string(text), MaxBase))
}

// keep sets the id unless there was an error.
func (id *ID) keep(parsed ID, err error) error {
	if err == nil {
		*id = parsed
	}
	return err
}

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary accepts 16 bytes. For any other length it returns a [*ParseError] and leaves
// the id unchanged.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return digits.Errorf(data, 0, "%d bytes; must be 16", len(data))
	}
	copy(id[:], data)
	return nil
}

// UUID returns the id in the text form of a UUID (RFC 9562 section 4): 32 lower-case
// hexadecimal digits, grouped 8-4-4-4-12. Version and variant are not set: only the form is
// that of a UUID.
func (id ID) UUID() string {
	var text [digits.UUIDLen]byte
	id.putUUID(&text)
	return string(text[:])
}

// AppendUUID appends to dst what [ID.UUID] returns.
func (id ID) AppendUUID(dst []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, digits.UUIDLen)[:n+digits.UUIDLen]
	id.putUUID((*[digits.UUIDLen]byte)(dst[n:]))
	return dst
}

func (id *ID) putUUID(text *[digits.UUIDLen]byte) {
	digits.PutUUID(text, binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
}

// notUUID returns the error for a string of 36 bytes that is not a UUID.
func notUUID(text string) error {
	for i := 0; ; i++ {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != '-' {
				return digits.Errorf(text, i, "%q instead of a hyphen", text[i])
			}
		default:
			if digits.HexValue(text[i]) > 15 {
				return digits.Errorf(text, i, "%q is not a hexadecimal digit", text[i])
			}
		}
	}
}

// Value implements [driver.Valuer]. It returns the text of [ID.UUID], which every Postgres
// driver accepts for a column of type uuid. For a column of bytes pass id[:] instead. Both
// columns sort as the ids do. MariaDB's type uuid rejects or missorts ids.
func (id ID) Value() (driver.Value, error) { return id.UUID(), nil }

// Scan implements sql.Scanner. It accepts what drivers return for a uuid column: 36 characters
// as a string or bytes, or 16 bytes. It also accepts the 16 bytes of a bytea column, and the 22
// digits of [ID.String]. NULL is an error: scan a nullable column into a [database/sql.Null] of
// ID. If Scan fails, the id is unchanged.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case []byte:
		switch len(src) {
		case len(id):
			return id.UnmarshalBinary(src)
		case digits.UUIDLen:
			return id.keep(Parse(string(src)))
		}
		return id.UnmarshalText(src)
	case string:
		if len(src) == digits.UUIDLen {
			return id.keep(Parse(src))
		}
		return id.UnmarshalText([]byte(src))
	case [16]byte:
		*id = src
		return nil
	}
	return &digits.ScanError{Value: src}
}
