package uuidv7

import (
	"database/sql/driver"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

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
