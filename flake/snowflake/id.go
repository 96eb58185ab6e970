// Package snowflake makes 64-bit ids that sort by the time they were made and
// that are never handed out twice, without asking any other machine: those of
// Twitter's snowflake and of flake-idgen 1.4.0 (npm), two layouts of one type.
//
//	           63  62                22 21     17 16     12 11          0
//	          +---+--------------------+---------+---------+-------------+
//	[Twitter] | 0 |  milliseconds, 41  |      machine, 10  | sequence, 12|  any split of the 22 bits
//	          +---+--------------------+---------+---------+-------------+
//	[Idgen]   |    milliseconds, 42    |datac., 5|worker, 5| sequence, 12|
//	          +------------------------+---------+---------+-------------+
//
//	                     Twitter                     Idgen
//	time                 41 bits, ms since Epoch     42 bits, ms since Epoch
//	Epoch                2010-11-04T01:42:54.657Z    1970-01-01T00:00:00Z, unless set
//	years that fit       2010 to 2080                1970 to 2109
//	machine              0 to 1023                   0 to 1023, datacenter*32 + worker
//	ids a millisecond    4096                        4096, or what seqMask leaves
//	highest bit          always 0                    1 from 2039 on, with the epoch of 1970
//
// An id is a number; its bytes are big-endian, so ids of one layout and epoch
// compare as numbers and as bytes.
//
// Start from [Layout.Open], a generator whose ids stay unique across crashes,
// restarts and a clock set back, or from [Layout.NewGenerator], which remembers
// nothing once the process has ended; and from [ID] for its texts. The errors are
// those of package flake.
//
// Uniqueness rests on one rule the package cannot check: no two generators share
// a machine. Ids can be guessed; they are names, not secrets.
//
// Where flake-idgen does something else: it masks a datacenter, a worker, an id
// and a seqMask that are out of range without a word, and takes the id where a
// datacenter is given too, while here each is an error; it repeats ids after a
// restart within a millisecond or with the clock set back; and in the very
// millisecond of its epoch it begins with sequence 1.
package snowflake

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
)

// ID is one id, as a number. Any number is an ID; what is in it depends on its
// [Layout].
type ID uint64

// Bytes is the id's 8 bytes, big-endian: what flake-idgen's next returns.
func (id ID) Bytes() (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// FromBytes is the reverse of [ID.Bytes].
func FromBytes(b [8]byte) ID { return ID(binary.BigEndian.Uint64(b[:])) }

// Plus returns the id that is i after this one in a [Run].
func (id ID) Plus(i int) ID { return id + ID(i) }

// IsZero tells whether it is 0.
func (id ID) IsZero() bool { return id == 0 }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other.
// It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return cmp.Compare(id, other) }

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
