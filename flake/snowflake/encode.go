package snowflake

import (
	"database/sql/driver"
	"fmt"
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

// The text of an id in JSON, XML and configuration is that of String, in JSON
// within quotes: a number above 2^53 would be rounded by JavaScript and others.
// Its binary form is the 8 bytes, its form in a database a number.

// MarshalText returns what [ID.String] does. It serves encoding/json too, values
// and map keys both. The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText takes exactly what [ID.MarshalText] returns. On a
// [*flake.ParseError] the id is left as it was.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// MarshalBinary returns the 8 bytes of [ID.Bytes]. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) {
	b := id.Bytes()
	return b[:], nil
}

// UnmarshalBinary takes 8 bytes. On a [*flake.ParseError] the id is left as it was.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != 8 {
		return digits.Errorf[flake.ParseError](data, 0, "%d bytes where 8 belong", len(data))
	}
	*id = FromBytes([8]byte(data))
	return nil
}

// Value implements [driver.Valuer] with a number, for a column of type bigint,
// which then sorts as the ids do. An id with the highest bit set, as those of
// flake-idgen have from 2039 on, fits no such column and is an error: store the
// slice of [ID.Bytes] or the text of [ID.String] instead.
func (id ID) Value() (driver.Value, error) {
	if id > math.MaxInt64 {
		return nil, fmt.Errorf("flake: the id %v does not fit the 63 bits of a column's number", id)
	}
	return int64(id), nil
}

// Scan implements sql.Scanner. It takes a number, and decimal text as a string
// or bytes; bytes are never taken for those of [ID.Bytes]. NULL is an error: scan
// into [database/sql.Null] of ID where it may occur. On an error the id is left
// as it was.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case int64:
		if src < 0 {
			return fmt.Errorf("flake: cannot scan %d into an id", src)
		}
		*id = ID(src)
		return nil
	case []byte:
		return id.UnmarshalText(src)
	case string:
		return id.UnmarshalText([]byte(src))
	}
	return digits.CannotScan(src)
}
