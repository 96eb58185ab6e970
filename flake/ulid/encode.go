package ulid

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
