package flake

import (
	"database/sql/driver"
	"encoding/hex"

	"github.com/flake-go/flake/flake/internal/digits"
)

// The text of an id in JSON, XML and configuration is that of String; its
// binary form the 16 bytes; its form in a database that of [ID.UUID].

// MarshalText returns what [ID.String] does, 22 digits of base 62. It serves
// encoding/json too, values and map keys both. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText takes exactly what [ID.MarshalText] returns. On a [*ParseError]
// the id is left as it was.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != Width(MaxBase) {
		return digits.Errorf[ParseError](text, 0, "%d bytes where %d digits of base 62 belong", len(text), Width(MaxBase))
	}
	parsed, err := ParseBase(string(text), MaxBase)
	if err == nil {
		*id = parsed
	}
	return err
}

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary takes 16 bytes. On a [*ParseError] the id is left as it was.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return digits.Errorf[ParseError](data, 0, "%d bytes where 16 belong", len(data))
	}
	copy(id[:], data)
	return nil
}

// The hyphens of a UUID's text (RFC 9562 section 4), by place.
const (
	uuidLen = 36
	hyphen1 = 8
	hyphen2 = 13
	hyphen3 = 18
	hyphen4 = 23
)

// UUID is the id in the text form of a UUID (RFC 9562 section 4): 32
// hexadecimal digits, lower case, as 8-4-4-4-12. The bits are the id's own:
// version and variant are not set, so it is the form alone that is a UUID's.
func (id ID) UUID() string {
	var buf [uuidLen]byte
	return string(id.AppendUUID(buf[:0]))
}

// AppendUUID appends what [ID.UUID] returns to dst.
func (id ID) AppendUUID(dst []byte) []byte {
	var b [uuidLen]byte
	hex.Encode(b[0:], id[0:4])
	hex.Encode(b[hyphen1+1:], id[4:6])
	hex.Encode(b[hyphen2+1:], id[6:8])
	hex.Encode(b[hyphen3+1:], id[8:10])
	hex.Encode(b[hyphen4+1:], id[10:16])
	b[hyphen1], b[hyphen2], b[hyphen3], b[hyphen4] = '-', '-', '-', '-'
	return append(dst, b[:]...)
}

// parseUUID reads what [ID.UUID] returns, in either case.
func parseUUID(text string) (ID, error) {
	var id ID
	for i, n := 0, 0; i < uuidLen; i++ {
		switch i {
		case hyphen1, hyphen2, hyphen3, hyphen4:
			if text[i] != '-' {
				return ID{}, digits.Errorf[ParseError](text, i, "%q where a hyphen belongs", text[i])
			}
			continue
		}
		nibble := digits.HexValue(text[i])
		if nibble > 15 {
			return ID{}, digits.Errorf[ParseError](text, i, "%q, no hexadecimal digit,", text[i])
		}
		id[n/2] = id[n/2]<<4 | nibble
		n++
	}
	return id, nil
}

// Value implements [driver.Valuer] with the text of [ID.UUID], which every
// Postgres driver takes for a column of type uuid. For a bytea column pass
// id[:] as the argument instead. Both columns sort as the ids do.
func (id ID) Value() (driver.Value, error) { return id.UUID(), nil }

// Scan implements sql.Scanner. It takes what drivers return for a uuid column, 36
// characters as a string or bytes, or 16 bytes, which is also what they return
// for bytea; and the 22 digits of [ID.String]. NULL is an error: scan into
// [database/sql.Null] of ID where it may occur. On an error the id is left as it
// was.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case []byte:
		if len(src) == len(id) {
			return id.UnmarshalBinary(src)
		}
		return id.scanText(string(src[:min(len(src), 130)]))
	case string:
		return id.scanText(src)
	case [16]byte:
		*id = src
		return nil
	}
	return digits.CannotScan(src)
}

func (id *ID) scanText(text string) error {
	if len(text) != uuidLen {
		return id.UnmarshalText([]byte(text))
	}
	parsed, err := parseUUID(text)
	if err == nil {
		*id = parsed
	}
	return err
}
