// Package ulid makes unique, strictly ascending ULIDs (https://github.com/ulid/spec), without
// contacting any other machine.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               milliseconds since 1970-01-01 UTC               |
//	|            48 bits            |       sequence, 16 bits       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            worker                             |
//	|            48 bits            |        random, 16 bits        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
//	sequence  the id's number within the millisecond, from 0
//	worker    the worker of the generator
//	random    new in each id
//	text      26 digits from 0123456789ABCDEFGHJKMNPQRSTVWXYZ, Crockford's base 32
//
// Ids sort by time, as bytes and as text. The spec has 80 random bits after the time,
// which a monotonic generator increments; here those bits are the last three fields.
//
// Start with [New], which needs no setup but guarantees less; [Open], for a generator whose
// ids stay unique across crashes, restarts and a clock set back; [NewGenerator], which saves
// nothing; and [ID]. The errors are those of package flake.
//
// Uniqueness depends on one rule that the package cannot check: no two generators share a
// worker id. There are two costs compared with ULIDs whose 80 bits are random. Ids show their
// worker, which may be a MAC address. Ids can also be guessed: they have only 16 random bits.
// They are names, not secrets.
package ulid

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/halves"
)

// ID is one id. Any 16 bytes are an ID; the zero value is the lowest.
type ID [16]byte

// MaxMilli is the latest time of an id in milliseconds since 1970, in the year 10889.
const MaxMilli = halves.MaxMilli

// Make returns the id with the given time, in milliseconds since 1970-01-01 UTC, and a worker,
// sequence and random bits. A time above MaxMilli or a worker above [flake.MaxWorker] is an
// error. A [Generator] makes new ids.
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

// Sequence returns the id's number within its millisecond, starting at 0.
func (id ID) Sequence() uint16 { return layout.SequenceOf(id) }

// Random returns the id's random bits.
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

var layout = halves.ULID

// Options configure a [Generator]. The zero value is valid.
type Options = flake.Options

// Generator makes ids, each higher than the last and never ahead of its clock: at most 65,536
// per millisecond, up to the year 6429. Any number of goroutines may use a Generator; it takes
// no locks and allocates nothing. On a zero Generator, Next and similar methods fail.
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
// processes could choose the same worker id. If the 65,536 ids of a millisecond are used up, New
// waits for the next millisecond. If a system must not rely on chance, or relies on ascending
// ids, use [Open].
func New() ID { return fresh() }

var fresh = halves.Fresh[ID](layout)

// Run is a run of consecutive ids: First and the Count-1 ids after it. All of them have First's
// random bits.
type Run = flake.RunOf[ID]

const (
	encodedLen = 26
	crockford  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

var values = digits.Values(crockford, strings.ToLower(crockford))

// Width returns the length of [ID.Padded] in a base from 2 to 62: 128 in base 2, 32 in base 16,
// 22 in base 62. For any other base it returns 0.
func Width(base int) int { return flake.Width(base) }

// String returns the id's canonical text, 26 digits in Crockford's base 32, upper case. These
// strings sort as the ids do.
func (id ID) String() string {
	var text [encodedLen]byte
	id.encode(&text)
	return string(text[:])
}

// AppendText appends to dst what [ID.String] returns. The error is always nil.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	n := len(dst)
	dst = slices.Grow(dst, encodedLen)[:n+encodedLen]
	id.encode((*[encodedLen]byte)(dst[n:]))
	return dst, nil
}

func (id *ID) encode(text *[encodedLen]byte) {
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	text[0], text[1] = crockford[high>>61], crockford[high>>56&31]
	put8(text[2:10], high>>16)
	put8(text[10:18], high<<24|low>>40)
	put8(text[18:], low)
}

// put8 writes the low 40 bits of v as 8 digits.
func put8(text []byte, v uint64) {
	_ = text[7]
	text[0] = crockford[v>>35&31]
	text[1] = crockford[v>>30&31]
	text[2] = crockford[v>>25&31]
	text[3] = crockford[v>>20&31]
	text[4] = crockford[v>>15&31]
	text[5] = crockford[v>>10&31]
	text[6] = crockford[v>>5&31]
	text[7] = crockford[v&31]
}

// UUID returns the id in the text form of a UUID, lower case, for Postgres' type uuid. Version
// and variant are not set: only the form is that of a UUID.
func (id ID) UUID() string { return flake.ID(id).UUID() }

// Text returns the id as a number in a base from 2 to 62, without leading zeros, like [flake.ID.Text].
// In base 32 the digits are not those of [ID.String].
func (id ID) Text(base int) (string, error) { return flake.ID(id).Text(base) }

// AppendBase appends to dst what [ID.Text] returns. If it fails, it returns dst unchanged.
func (id ID) AppendBase(dst []byte, base int) ([]byte, error) {
	return flake.ID(id).AppendBase(dst, base)
}

// Padded returns the id as a number in a base from 2 to 62, padded with leading zeros to [Width]
// digits, like [flake.ID.Padded].
func (id ID) Padded(base int) (string, error) { return flake.ID(id).Padded(base) }

// Parse parses what [ID.String] returns, in either case. For any other text it returns a
// [*flake.ParseError]. As in the spec, that includes strings with a first digit above 7, which
// exceed the highest id, and strings with I, L, O or U, which are not digits.
func Parse(text string) (id ID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// decode returns the number that text represents, if its first digit is at most 7. If all is above
// 31, a byte is not a digit.
func decode(text *[encodedLen]byte) (high, low uint64, all byte) {
	first, second := values[text[0]], values[text[1]]
	a, allA := four(text, 2)
	b, allB := four(text, 6)
	c, allC := four(text, 10)
	d, allD := four(text, 14)
	e, allE := four(text, 18)
	f, allF := four(text, 22)
	return uint64(first)<<61 | uint64(second)<<56 | a<<36 | b<<16 | c>>4, c<<60 | d<<40 | e<<20 | f,
		first | second | allA | allB | allC | allD | allE | allF
}

// four returns the value of 4 digits, and their values combined with OR.
func four(text *[encodedLen]byte, at int) (value uint64, all byte) {
	a, b, c, d := values[text[at]], values[text[at+1]], values[text[at+2]], values[text[at+3]]
	return uint64(a)<<15 | uint64(b)<<10 | uint64(c)<<5 | uint64(d), a | b | c | d
}

// ParseBase parses what [ID.Text] and [ID.Padded] return, like [flake.ParseBase].
func ParseBase(text string, base int) (ID, error) {
	id, err := flake.ParseBase(text, base)
	return ID(id), err
}

// MustParse is like [Parse] but panics on an error. It is for ids in source code.
func MustParse(text string) ID { return digits.Must(Parse(text)) }

// In JSON, XML, configuration and a database an id is the text that String returns; in binary
// form it is the 16 bytes.

// MarshalText returns what [ID.String] does. encoding/json calls it for values and map keys.
// The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts what [Parse] does. If it fails, the id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != encodedLen {
		return digits.Errorf(text, 0, "%d bytes; must be %d digits", len(text), encodedLen)
	}
	high, low, all := decode((*[encodedLen]byte)(text))
	switch {
	case all > 31:
		return digits.Wrong(string(text), 32, encodedLen, &values)
	case text[0] > '7':
		return digits.Errorf(text, 0, "%q is above the highest first digit, 7", text[0])
	}
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return nil
}

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary accepts 16 bytes. For any other length it returns a [*flake.ParseError] and
// leaves the id unchanged.
func (id *ID) UnmarshalBinary(data []byte) error {
	return (*flake.ID)(id).UnmarshalBinary(data)
}

// Value implements [driver.Valuer]. It returns the text, for a column of 26 characters. For a
// column of Postgres' type uuid pass the text from [ID.UUID] instead, and for a column of
// bytes id[:]. All three columns sort as the ids do.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements sql.Scanner. It accepts the text as a string or bytes, and what drivers
// return for a uuid column: 36 characters as a string or bytes, or 16 bytes. NULL is an error:
// scan a nullable column into a [database/sql.Null] of ID. If Scan fails, the id is unchanged.
func (id *ID) Scan(src any) error {
	switch s := src.(type) {
	case []byte:
		if len(s) != len(id) && len(s) != digits.UUIDLen {
			return id.UnmarshalText(s)
		}
	case string:
		if len(s) != digits.UUIDLen {
			return id.UnmarshalText([]byte(s))
		}
	}
	return (*flake.ID)(id).Scan(src)
}
