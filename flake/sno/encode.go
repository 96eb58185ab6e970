package sno

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
)

// MarshalText gives what [ID.String] does. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText takes exactly what [ID.MarshalText] gives. On a [*ParseError]
// the id is left as it was, as with the other methods.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != EncodedLen || !id.decode(binary.BigEndian.Uint64(text[:8]), binary.BigEndian.Uint64(text[8:])) {
		return notAnID(text)
	}
	return nil
}

// MarshalBinary gives the 10 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary takes 10 bytes.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return errorf(data, 0, "%d bytes where 10 belong", len(data))
	}
	copy(id[:], data)
	return nil
}

// MarshalJSON gives the text in quotes; the zero value is null. The error is
// always nil.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte("null"), nil
	}
	quoted, _ := id.AppendText([]byte{'"'})
	return append(quoted, '"'), nil
}

// UnmarshalJSON takes exactly what [ID.MarshalJSON] gives.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*id = ID{}
		return nil
	}
	if len(data) != EncodedLen+2 || data[0] != '"' || data[len(data)-1] != '"' {
		return errorf(data, 0, "neither null nor %d digits in quotes", EncodedLen)
	}
	return id.UnmarshalText(data[1 : len(data)-1])
}

// Value implements [driver.Valuer] with the 10 bytes, the zero value's too.
func (id ID) Value() (driver.Value, error) { return id[:], nil }

// Scan implements sql.Scanner. It takes 10 bytes, or the text as a string or
// bytes. NULL and what is empty give the zero value.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*id = ID{}
		return nil
	case []byte:
		switch len(src) {
		case 0:
			*id = ID{}
			return nil
		case EncodedLen:
			return id.UnmarshalText(src)
		}
		return id.UnmarshalBinary(src)
	case string:
		if src == "" {
			*id = ID{}
			return nil
		}
		return id.UnmarshalText([]byte(src))
	}
	return fmt.Errorf("flake: cannot scan %T into an id", src)
}
