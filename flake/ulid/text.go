package ulid

import (
	"database/sql/driver"
	"encoding/binary"
	"slices"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

const (
	encodedLen = 26
	crockford  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// values are the digits' values by byte, in either case; 255 marks what is no digit.
var values = makeValues()

func makeValues() (all [256]byte) {
	for i := range all {
		all[i] = 255
	}
	for i := range len(crockford) {
		c := crockford[i]
		all[c] = byte(i)
		if c >= 'A' {
			all[c+'a'-'A'] = byte(i)
		}
	}
	return all
}

// Width is the number of digits of the highest id in a base from 2 to 62, and so of
// every padded text in it: 128 for 2, 32 for 16, 22 for 62. It is 0 for any other base.
func Width(base int) int { return flake.Width(base) }

// String is the id's own text, 26 digits of Crockford's base 32, upper case: texts that
// sort as ids do.
func (id ID) String() string {
	var text [encodedLen]byte
	id.encode(&text)
	return string(text[:])
}

// AppendText appends what [ID.String] returns to dst. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	n := len(dst)
	dst = slices.Grow(dst, encodedLen)[:n+encodedLen]
	id.encode((*[encodedLen]byte)(dst[n:]))
	return dst, nil
}

func (id *ID) encode(text *[encodedLen]byte) {
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	for i := encodedLen - 1; i >= 0; i-- {
		text[i] = crockford[low&31]
		high, low = high>>5, low>>5|high<<59
	}
}

// UUID is the id in the text form of a UUID, lower case, for a column of type uuid. The
// bits are the id's own: it is the form alone that is a UUID's.
func (id ID) UUID() string { return flake.ID(id).UUID() }

// Text is the id as a number in a base from 2 to 62, digits 0-9A-Za-z in that order,
// without leading zeros, as package flake has it; in base 32 they are others than those
// of [ID.String]. Any other base is [flake.ErrBase].
func (id ID) Text(base int) (string, error) { return flake.ID(id).Text(base) }

// AppendBase appends what [ID.Text] returns to dst. On [flake.ErrBase] dst comes back
// as it was.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	return flake.ID(id).AppendBase(dst, base)
}

// Padded is the id in a base from 2 to 62 with leading zeros to [Width] digits:
// in any one base such texts sort, as bytes, as the ids do. Any other base is
// [flake.ErrBase].
func (id ID) Padded(base int) (string, error) { return flake.ID(id).Padded(base) }

// Parse reads what [ID.String] returns, in either case. Anything else is a
// [*flake.ParseError]: as the spec says also a first digit above 7, which would be above
// the highest id, and I, L, O and U, which are no digits.
func Parse(text string) (ID, error) { return parse(text) }

func parse[T string | []byte](text T) (id ID, err error) {
	if len(text) != encodedLen {
		return id, digits.Errorf[flake.ParseError](text, 0, "%d bytes where %d digits belong", len(text), encodedLen)
	}
	var high, low uint64
	var highest byte
	for i := range encodedLen {
		value := values[text[i]]
		highest = max(highest, value)
		high, low = high<<5|low>>59, low<<5|uint64(value)
	}
	switch {
	case highest > 31:
		at := 0
		for values[text[at]] != 255 {
			at++
		}
		return id, digits.Errorf[flake.ParseError](text, at, "%q, none of the digits 0-9A-Z without I, L, O and U,", text[at])
	case values[text[0]] > 7:
		return id, digits.Errorf[flake.ParseError](text, 0, "%q, which is above the highest first digit, 7,", text[0])
	}
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id, nil
}

// ParseBase reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. Any other base is
// [flake.ErrBase]; text that is empty, too long, above the highest id, or has
// anything but digits of the base is a [*flake.ParseError].
func ParseBase(text string, base int) (ID, error) {
	id, err := flake.ParseBase(text, base)
	return ID(id), err
}

// MustParse is [Parse] that panics where that returns an error: for ids that are
// written in a program.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

// The text of an id in JSON, XML, configuration and a database is that of String; its
// binary form the 16 bytes.

// MarshalText returns what [ID.String] does. It serves encoding/json too, values
// and map keys both. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText takes what [Parse] does. On a [*flake.ParseError] the id is left as it
// was.
func (id *ID) UnmarshalText(text []byte) error { return id.to(parse(text)) }

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary takes 16 bytes. On a [*flake.ParseError] the id is left as it was.
func (id *ID) UnmarshalBinary(data []byte) error {
	return (*flake.ID)(id).UnmarshalBinary(data)
}

// Value implements [driver.Valuer] with the text, for a column of 26 characters. For one
// of type uuid pass [ID.UUID] as the argument instead, for bytes id[:]. All three sort as
// the ids do.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements sql.Scanner. It takes the text as a string or bytes, and what drivers
// return for a uuid column, 36 characters as a string or bytes, or 16 bytes. NULL is an
// error: scan into [database/sql.Null] of ID where it may occur. On an error the id is
// left as it was.
func (id *ID) Scan(src any) error {
	const uuidLen = 36
	switch s := src.(type) {
	case []byte:
		switch len(s) {
		case len(id), uuidLen:
			return (*flake.ID)(id).Scan(src)
		}
		return id.UnmarshalText(s)
	case string:
		if len(s) == uuidLen {
			return (*flake.ID)(id).Scan(src)
		}
		return id.to(parse(s))
	case [16]byte:
		*id = s
		return nil
	}
	return digits.CannotScan(src)
}

func (id *ID) to(read ID, err error) error {
	if err == nil {
		*id = read
	}
	return err
}
