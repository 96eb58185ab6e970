package sno

import (
	"database/sql/driver"
	"encoding/binary"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

// The text of an id in JSON, XML and configuration is that of String; its
// binary form and that in a database the 10 bytes.

// MarshalText returns what [ID.String] does. It serves encoding/json too, values
// and map keys both. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText takes exactly what [ID.MarshalText] returns. On a
// [*flake.ParseError] the id is left as it was.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != SizeEncoded || !id.decode(binary.BigEndian.Uint64(text[:8]), binary.BigEndian.Uint64(text[8:])) {
		return notAnID(text)
	}
	return nil
}

// MarshalBinary returns the 10 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary takes 10 bytes. On a [*flake.ParseError] the id is left as it
// was.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return digits.Errorf[flake.ParseError](data, 0, "%d bytes where 10 belong", len(data))
	}
	copy(id[:], data)
	return nil
}

// Value implements [driver.Valuer] with the 10 bytes, for a column of type bytea,
// which then sorts as the ids do.
func (id ID) Value() (driver.Value, error) { return id[:], nil }

// Scan implements sql.Scanner. It takes 10 bytes, or the text as a string or bytes.
// NULL is an error: scan into [database/sql.Null] of ID where it may occur. On an
// error the id is left as it was.
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
	return digits.CannotScan(src)
}
