package uuidv7

import (
	"database/sql/driver"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

// encodedLen is the length of an id's text.
const encodedLen = 36

// Width is the number of digits of the highest number of 128 bits in a base from 2 to
// 62, and so of every padded text in it: 128 for 2, 32 for 16, 22 for 62. It is 0 for
// any other base.
func Width(base int) int { return flake.Width(base) }

// String is the id as a UUID is written (RFC 9562 section 4), lower case: texts that
// sort as ids do.
func (id ID) String() string { return flake.ID(id).UUID() }

// AppendText appends what [ID.String] returns to dst. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) { return flake.ID(id).AppendUUID(dst), nil }

// Text is the id as a number in a base from 2 to 62, digits 0-9A-Za-z in that order,
// without leading zeros, as package flake has it. Any other base is [flake.ErrBase].
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

// Parse reads what [ID.String] returns, in either case: a UUID of version 7, whoever
// has made it, or the nil UUID. Anything else is a [*flake.ParseError], and so is a
// UUID of another version or variant.
func Parse(text string) (ID, error) {
	if len(text) != encodedLen {
		return ID{}, digits.Errorf[flake.ParseError](text, 0, "%d bytes where a UUID has %d", len(text), encodedLen)
	}
	id, err := flake.Parse(text)
	if err != nil {
		return ID{}, err
	}
	return checked(ID(id), text, 14, 19)
}

// checked returns the id if it is of version 7. Where text says otherwise is told by the
// places of version and variant.
func checked[T string | []byte](id ID, text T, version, variant int) (ID, error) {
	switch {
	case id.IsZero():
	case id[6]>>4 != 7:
		return ID{}, digits.Errorf[flake.ParseError](text, version, "version %d, where only 7 is taken,", id[6]>>4)
	case id[8]>>6 != 2:
		return ID{}, digits.Errorf[flake.ParseError](text, variant, "a variant other than that of RFC 9562, whose digit is 8, 9, a or b,")
	}
	return id, nil
}

// ParseBase reads an id written in a base from 2 to 62, with any number of leading
// zeros up to [Width] digits: the reverse of [ID.Text] and [ID.Padded]. Letters
// of the other case are other digits, in every base. Any other base is
// [flake.ErrBase]; text that is empty, too long, no UUID of version 7, or has
// anything but digits of the base is a [*flake.ParseError].
func ParseBase(text string, base int) (ID, error) {
	id, err := flake.ParseBase(text, base)
	if err != nil {
		return ID{}, err
	}
	return checked(ID(id), text, 0, 0)
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
func (id *ID) UnmarshalText(text []byte) error { return id.to(Parse(string(text))) }

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary takes the 16 bytes of a UUID of version 7, or of the nil UUID. On a
// [*flake.ParseError] the id is left as it was.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return digits.Errorf[flake.ParseError](data, 0, "%d bytes where 16 belong", len(data))
	}
	return id.to(checked(ID(data), data, 6, 8))
}

// Value implements [driver.Valuer] with the text, which every driver takes for a column
// of type uuid. It sorts as the ids do.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements sql.Scanner. It takes what drivers return for a uuid column, 36
// characters as a string or bytes, or 16 bytes. NULL is an error: scan into
// [database/sql.Null] of ID where it may occur. On an error the id is left as it was.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case []byte:
		if len(src) == len(id) {
			return id.UnmarshalBinary(src)
		}
		return id.UnmarshalText(src)
	case string:
		return id.to(Parse(src))
	case [16]byte:
		return id.UnmarshalBinary(src[:])
	}
	return digits.CannotScan(src)
}

func (id *ID) to(read ID, err error) error {
	if err == nil {
		*id = read
	}
	return err
}
