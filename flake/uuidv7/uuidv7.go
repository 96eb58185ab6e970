// Package uuidv7 makes unique, strictly ascending version 7 UUIDs (RFC 9562 section 5.7),
// without contacting any other machine.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|            48 bits            |  ver  |   sequence, 12 bits   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|var|                          worker                           |
//	|              48 bits              |      random, 14 bits      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	ver       0111, version 7
//	sequence  rand_a: the id's number within the millisecond, from 0 to 4095; a counter of
//	          fixed length right after the time (section 6.2, method 1)
//	var       10, the variant
//	worker    the upper bits of rand_b: the worker of the generator (section 6.4)
//	random    the rest of rand_b, new in each id; but with the sequence 4095, a counter that
//	          continues the sequence, from 0
//	text      32 hexadecimal digits, lower case, as 8-4-4-4-12
//
// Ids sort by time, as bytes and as text.
//
// Start with [New], which needs no setup but guarantees less; [Open], for a generator whose
// ids stay unique across crashes, restarts and a clock set back; [NewGenerator], which saves
// nothing; and [ID]. The errors are those of package flake.
//
// Uniqueness depends on one rule that the package cannot check: no two generators share a
// worker id. There are two costs compared with UUIDs whose 74 bits are random. Ids show their
// worker, which may be a MAC address. Ids can also be guessed: they have only 14 random bits,
// and none after the first 4,095 ids of a millisecond. They are names, not secrets.
package uuidv7

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/halves"
)

// ID is one id, the 16 bytes of a UUID. The zero value is the nil UUID (RFC 9562 section 5.9).
// The nil UUID and [Max] are the only valid ids without version 7.
type ID [16]byte

// Max is the max UUID (RFC 9562 section 5.10), which is above all other ids.
var Max = ID(bytes.Repeat([]byte{0xff}, 16))

// MaxMilli is the latest time of an id in milliseconds since 1970, in the year 10889.
const MaxMilli = halves.MaxMilli

// Make returns the id with the given time, in milliseconds since 1970-01-01 UTC, and a worker,
// sequence and random bits. A time above MaxMilli, a worker above [flake.MaxWorker], a
// sequence above 4095 or random bits above 16383 is an error. A [Generator] makes new ids.
func Make(milli uint64, worker flake.Worker, sequence, random uint16) (ID, error) {
	return layout.Make(milli, worker, sequence, random)
}

// Milli returns the id's time in milliseconds since 1970-01-01 UTC.
func (id ID) Milli() uint64 { return halves.Milli(id) }

// Time returns the id's time in UTC, to the millisecond.
func (id ID) Time() time.Time { return halves.Time(id) }

// Worker returns the worker that made the id. In ids from other programs the bits of worker,
// sequence and random may all be random.
func (id ID) Worker() flake.Worker { return layout.Worker(id) }

// Sequence returns the id's number within its millisecond, starting at 0, or 4095 if the number
// is higher.
func (id ID) Sequence() uint16 { return layout.SequenceOf(id) }

// Random returns the id's random bits. With the sequence 4095 they are a counter.
func (id ID) Random() uint16 { return layout.RandomOf(id) }

// Plus returns the id that is i places after this one in a [Run].
func (id ID) Plus(i int) ID { return halves.Plus(id, i) }

// IsZero reports whether id is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other:
// by time, then sequence, then worker. It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return flake.ID(id).Compare(flake.ID(other)) }

// Notional returns the lowest id that any generator can make at the time t: a bound for scans
// over ids. A time before 1970 counts as 1970, and a time after [MaxMilli] counts as MaxMilli.
func Notional(t time.Time) ID { return layout.Lowest(t) }

// Span returns the lowest and highest ids from the millisecond of first to the millisecond of
// last, both included, for `WHERE id BETWEEN $1 AND $2`. If last is before first, lowest is
// above highest, and the scan finds nothing.
func Span(first, last time.Time) (lowest, highest ID) {
	return layout.Lowest(first), layout.Highest(last)
}

var layout = halves.UUIDv7

// Options configure a [Generator]. The zero value is valid.
type Options = flake.Options

// Generator makes ids, each higher than the last and never ahead of its clock, up to the year
// 6429. Per millisecond, Reserve returns at most 4,095 ids, and all methods together at most
// 20,479. Any number of goroutines may use a Generator; it takes no locks and allocates nothing.
// On a zero Generator, Next and similar methods fail.
//
// Its methods are Next, NextN, Reserve, CatchUp, Close, Ready, Behind, Worker, PerTick,
// Waits, Last, Mark and LastSaved, like those of [flake.Generator].
type Generator = halves.Generator[ID]

// NewGenerator returns a generator that saves nothing: the caller must ensure that no earlier
// generator with this worker has made ids for the same time (otherwise use [Open]). A worker
// above [flake.MaxWorker] is an error.
func NewGenerator(worker flake.Worker, o Options) (*Generator, error) {
	return halves.New[ID](layout, worker, o)
}

// Open returns a generator whose ids are unique across restarts: each is higher than all ids
// made before with the same file and worker. Close it when done. Open behaves like
// [flake.Open] and returns the same errors.
func Open(ctx context.Context, path string, worker flake.Worker, o Options) (*Generator, error) {
	return halves.Open[ID](ctx, path, layout, worker, o)
}

// New returns a new id and needs no setup, like [flake.New]: it saves nothing on disk, and two
// processes could choose the same worker id. If the ids of a millisecond are used up, New
// waits for the next millisecond. If a system must not rely on chance, or relies on ascending
// ids, use [Open].
func New() ID { return fresh() }

var fresh = halves.Fresh[ID](layout)

// Run is a run of consecutive ids: First and the Count-1 ids after it. All of them have First's
// random bits, which may be replaced in each id.
type Run = flake.RunOf[ID]

// Width returns the length of [ID.Padded] in a base from 2 to 62: 128 in base 2, 32 in base 16,
// 22 in base 62. For any other base it returns 0.
func Width(base int) int { return flake.Width(base) }

// String returns the id in the text form of a UUID (RFC 9562 section 4), lower case. These
// strings sort as the ids do.
func (id ID) String() string { return flake.ID(id).UUID() }

// AppendText appends to dst what [ID.String] returns. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) { return flake.ID(id).AppendUUID(dst), nil }

// Text returns the id as a number in a base from 2 to 62, without leading zeros, like [flake.ID.Text].
func (id ID) Text(base int) (string, error) { return flake.ID(id).Text(base) }

// AppendBase appends to dst what [ID.Text] returns. If it fails, it returns dst unchanged.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	return flake.ID(id).AppendBase(dst, base)
}

// Padded returns the id as a number in a base from 2 to 62, padded with leading zeros to [Width]
// digits, like [flake.ID.Padded].
func (id ID) Padded(base int) (string, error) { return flake.ID(id).Padded(base) }

// Parse parses what [ID.String] returns, in either case, optionally in braces or after
// urn:uuid:. It accepts any version 7 UUID, the nil UUID, and [Max]. For any other text, such
// as a UUID of a different version or variant, it returns a [*flake.ParseError].
func Parse(text string) (id ID, err error) {
	if hi, lo, ok := digits.ParseUUID(text); ok && hi>>12&15 == 7 && lo>>62 == 2 {
		binary.BigEndian.PutUint64(id[:8], hi)
		binary.BigEndian.PutUint64(id[8:], lo)
		return id, nil
	}
	return parseOther(text)
}

// parseOther parses the other forms, the nil UUID and Max. Any other text is an error.
func parseOther(text string) (ID, error) {
	bare, start := digits.BareUUID(text)
	if len(bare) != digits.UUIDLen {
		return ID{}, digits.Errorf(text, 0, "%d bytes; must be the %d of a UUID, which may be in braces or after urn:uuid:",
			len(text), digits.UUIDLen)
	}
	id, err := flake.Parse(bare)
	if err != nil {
		return ID{}, err
	}
	return checked(ID(id), text, start+14, start+19)
}

// Validate returns the error that [Parse] would return.
func Validate(text string) error {
	_, err := Parse(text)
	return err
}

// checked returns the id if it is a version 7 UUID, the nil UUID or Max. Otherwise it returns an
// error; version and variant are the indexes in text of the digits that the error points to.
func checked[T string | []byte](id ID, text T, version, variant int) (ID, error) {
	switch {
	case id[6]>>4 == 7 && id[8]>>6 == 2:
	case id.IsZero() || id == Max:
	case id[6]>>4 != 7:
		return ID{}, digits.Errorf(text, version, "version %d; must be 7", id[6]>>4)
	default:
		return ID{}, digits.Errorf(text, variant,
			"not the variant of RFC 9562, whose digit is 8, 9, a or b")
	}
	return id, nil
}

// ParseBase parses what [ID.Text] and [ID.Padded] return, like [flake.ParseBase]. If the number is
// not a UUID that [Parse] accepts, ParseBase returns a [*flake.ParseError].
func ParseBase(text string, base int) (ID, error) {
	id, err := flake.ParseBase(text, base)
	if err != nil {
		return ID{}, err
	}
	return checked(ID(id), text, 0, 0)
}

// MustParse is like [Parse] but panics on an error. It is for ids in source code.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

// In JSON, XML, configuration and a database an id is the text that String returns; in binary
// form it is the 16 bytes.

// MarshalText returns what [ID.String] does. encoding/json calls it for values and map keys.
// The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts what [Parse] does. If it fails, the id is unchanged.
func (id *ID) UnmarshalText(text []byte) error { return id.to(Parse(string(text))) }

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary accepts the 16 bytes of a version 7 UUID, of the nil UUID, or of [Max]. For
// anything else it returns a [*flake.ParseError] and leaves the id unchanged.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return digits.Errorf(data, 0, "%d bytes; must be 16", len(data))
	}
	return id.to(checked(ID(data), data, 6, 8))
}

// Value implements [driver.Valuer]. It returns the text, which every driver accepts for a
// column of type uuid. The column sorts as the ids do.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements sql.Scanner. It accepts what drivers return for a uuid column: 36 characters
// as a string or bytes, or 16 bytes. NULL is an error: scan a nullable column into a
// [database/sql.Null] of ID. If Scan fails, the id is unchanged.
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
	return &digits.ScanError{Value: src}
}

func (id *ID) to(read ID, err error) error {
	if err == nil {
		*id = read
	}
	return err
}
