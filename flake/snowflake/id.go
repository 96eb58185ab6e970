// Package snowflake makes unique 64-bit ids that sort by creation time, without contacting any
// other machine: the ids of Twitter's snowflake and of flake-idgen 1.4.0 (npm), which are two
// layouts of one type.
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
//	ids per millisecond  4096                        4096, or what seqMask leaves
//	highest bit          always 0                    1 from 2039 on, with the epoch of 1970
//
// An id is a number; its bytes are big-endian, so ids of one layout and epoch sort by time
// both as numbers and as bytes.
//
// Start with [Layout.Open], for a generator whose ids stay unique across crashes, restarts and
// a clock set back; [Layout.NewGenerator], which saves nothing; and [ID] for its text forms. The
// errors are those of package flake.
//
// Uniqueness depends on one rule that the package cannot check: no two generators
// share a machine. Ids can be guessed; they are names, not secrets.
//
// flake-idgen differs in a few ways. It silently masks a datacenter, worker, id or seqMask
// that is out of range, and ignores a datacenter if there is an id; here both are errors. It
// repeats ids after a restart within a millisecond or with the clock set back. In the
// millisecond of its epoch it begins with sequence 1.
package snowflake

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/tick"
)

// ID is one id, as a number. Any number is an ID; the [Layout] determines its parts.
type ID uint64

// Bytes returns the id's 8 bytes, big-endian, as flake-idgen's next does.
func (id ID) Bytes() (b [8]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// FromBytes is the reverse of [ID.Bytes].
func FromBytes(b [8]byte) ID { return ID(binary.BigEndian.Uint64(b[:])) }

// Plus returns the id that is i places after this one in a [Run].
func (id ID) Plus(i int) ID { return id + ID(i) }

// IsZero reports whether id is 0.
func (id ID) IsZero() bool { return id == 0 }

// Compare returns -1, 0 or 1 as id is lower than, equal to or higher than other.
// It fits [slices.SortFunc].
func (id ID) Compare(other ID) int { return cmp.Compare(id, other) }

// In JSON, XML and configuration an id is the text that String returns. In JSON it is a
// string, because JavaScript and other languages would round a number above 2^53; a number is
// read too. In binary form an id is the 8 bytes, and in a database a number.

// MarshalText returns what [ID.String] does. encoding/json calls it for values and map keys.
// The error is always nil.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts what [Parse] does. If it fails, the id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// UnmarshalJSON accepts a string, as [ID.UnmarshalText] does, or a number without a fraction or an
// exponent. If it fails, the id is unchanged; null leaves it unchanged too.
func (id *ID) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	return id.UnmarshalText([]byte(text))
}

// MarshalBinary returns the 8 bytes of [ID.Bytes]. The error is always nil.
func (id ID) MarshalBinary() ([]byte, error) {
	b := id.Bytes()
	return b[:], nil
}

// UnmarshalBinary accepts 8 bytes. For any other length it returns a [*flake.ParseError] and
// leaves the id unchanged.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != 8 {
		return digits.Errorf(data, 0, "%d bytes; must be 8", len(data))
	}
	*id = FromBytes([8]byte(data))
	return nil
}

// Value implements [driver.Valuer]. It returns a number, for a column of type bigint, which
// then sorts as the ids do. An id with the highest bit set, as in flake-idgen's ids from 2039
// on, does not fit in such a column and is an error: store the bytes from [ID.Bytes] or the
// text from [ID.String] instead.
func (id ID) Value() (driver.Value, error) {
	if id > math.MaxInt64 {
		return nil, fmt.Errorf("flake: id %v does not fit in a bigint column, of 63 bits and a sign", id)
	}
	return int64(id), nil
}

// Scan implements sql.Scanner. It accepts a number, and decimal text as a string or bytes. It
// always reads bytes as text, never as the bytes from [ID.Bytes]. NULL is an error: scan a
// nullable column into a [database/sql.Null] of ID. If Scan fails, the id is unchanged.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case int64:
		if src < 0 {
			return fmt.Errorf("flake: cannot scan %d into an id", src)
		}
		*id = ID(src)
		return nil
	case uint64: // of MySQL's bigint unsigned
		*id = ID(src)
		return nil
	case []byte:
		return id.UnmarshalText(src)
	case string:
		return id.UnmarshalText([]byte(src))
	}
	return &digits.ScanError{Value: src}
}

// Limits of a layout, in bits.
const (
	maxLow   = 22 // below the time
	maxTime  = 46
	maxID    = 64
	maxTicks = 63 // time and sequence
)

// Layout holds the number of bits of each field of an id, highest field first. Datacenter, Worker
// and Sequence have at most 22 bits together. The bits above the time are 0, so ids with fewer
// bits are smaller numbers: ids of 53 bits fit in a JavaScript number. Datacenter and Worker
// together are the machine; a layout without datacenters has Datacenter 0.
type Layout struct {
	Time       uint8  // 1 to 46; 41 lasts for 69 years
	Datacenter uint8  // 0 to 22
	Worker     uint8  // 0 to 22
	Sequence   uint8  // 0 to 22
	Epoch      uint64 // time from which ids count, in milliseconds since 1970-01-01 UTC
}

// The common layouts. In a copy, Epoch and the numbers of bits can be changed, for example to
// Worker 6 and Sequence 16.
var (
	Twitter = Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 1288834974657}
	Idgen   = Layout{Time: 42, Datacenter: 5, Worker: 5, Sequence: 12}
)

// Check returns an error if the layout is not valid.
func (l Layout) Check() error {
	switch {
	case l.Time < 1 || l.Time > maxTime:
		return fmt.Errorf("flake: %d bits of time: must be 1 to %d", l.Time, maxTime)
	case int(l.Datacenter)+int(l.Worker)+int(l.Sequence) > maxLow:
		return fmt.Errorf("flake: %d bits of datacenter, %d of worker and %d of sequence: must be at most %d together",
			l.Datacenter, l.Worker, l.Sequence, maxLow)
	case l.Time+l.low() > maxID:
		return fmt.Errorf("flake: %d bits of time and %d below it: must be at most %d together", l.Time, l.low(), maxID)
	case l.Time+l.Sequence > maxTicks:
		return fmt.Errorf("flake: %d bits of time and %d of sequence: must be at most %d together",
			l.Time, l.Sequence, maxTicks)
	case l.Epoch > tick.MaxLast-l.span():
		return fmt.Errorf("flake: epoch at %d ms since 1970: must be at most %d", l.Epoch, tick.MaxLast-l.span())
	}
	return nil
}

func (l Layout) low() uint8 { return l.Datacenter + l.Worker + l.Sequence }

// span returns the latest time that an id can have, in ms since Epoch.
func (l Layout) span() uint64 { return 1<<l.Time - 1 }

// Last returns the latest time that an id can have.
func (l Layout) Last() time.Time { return time.UnixMilli(int64(l.Epoch + l.span())).UTC() }

// Machine identifies a generator of a layout. It is 0 to 1023 in [Twitter] and [Idgen].
type Machine uint32

// Machine returns the machine number for a datacenter and a worker, each 0 to 31 in [Idgen]. In
// [Twitter] the datacenter must be 0, and the worker 0 to 1023. A value out of range or an
// invalid layout is an error.
func (l Layout) Machine(datacenter, worker int) (Machine, error) {
	switch err := l.Check(); {
	case err != nil:
		return 0, err
	case l.Datacenter == 0 && datacenter != 0:
		return 0, fmt.Errorf("flake: datacenter %d, but the layout has none: copy it with bits for one, "+
			"such as Datacenter 5 and Worker 5, or pass one number from 0 to %d as the worker, and datacenter 0",
			datacenter, 1<<l.Worker-1)
	case datacenter>>l.Datacenter != 0:
		return 0, fmt.Errorf("flake: datacenter %d is out of range: must be 0 to %d", datacenter, 1<<l.Datacenter-1)
	case worker>>l.Worker != 0:
		return 0, fmt.Errorf("flake: worker %d is out of range: must be 0 to %d", worker, 1<<l.Worker-1)
	}
	return Machine(datacenter<<l.Worker | worker), nil
}

func (l Layout) checkMachine(m Machine) error {
	if highest := Machine(1)<<(l.Datacenter+l.Worker) - 1; m > highest {
		return fmt.Errorf("flake: machine %d is out of range: must be 0 to %d", m, highest)
	}
	return nil
}

// Parts are the parts of an id.
type Parts struct {
	Milli      uint64  // milliseconds since 1970-01-01 UTC
	Machine    Machine // Datacenter and Worker as one number
	Datacenter int
	Worker     int
	Sequence   uint32
}

// Time returns Milli as a time in UTC.
func (p Parts) Time() time.Time { return time.UnixMilli(int64(p.Milli)).UTC() }

// Decompose returns the parts of an id of the layout. A number with a bit above the time is not an
// id of the layout, which is an error.
func (l Layout) Decompose(id ID) (Parts, error) {
	if uint64(id)>>l.low() > l.span() {
		return Parts{}, fmt.Errorf("flake: %v is not an id of the layout, whose ids have %d bits", id, l.Time+l.low())
	}
	machine := Machine(id >> l.Sequence & (1<<(l.Datacenter+l.Worker) - 1))
	return Parts{
		Milli:      l.Epoch + uint64(id)>>l.low(),
		Machine:    machine,
		Datacenter: int(machine >> l.Worker),
		Worker:     int(machine & (1<<l.Worker - 1)),
		Sequence:   uint32(id & (1<<l.Sequence - 1)),
	}, nil
}

// Make returns the id with the given time, in milliseconds since 1970-01-01 UTC, a machine and a
// sequence: the reverse of [Layout.Decompose]. A value out of range or an invalid layout is an
// error. A [Generator] makes new ids.
func (l Layout) Make(milli uint64, machine Machine, sequence uint32) (ID, error) {
	switch err := l.Check(); {
	case err != nil:
		return 0, err
	case milli-l.Epoch > l.span(): // a time before the epoch wraps around
		return 0, fmt.Errorf("flake: time %d ms since 1970 is out of range: must be %d to %d",
			milli, l.Epoch, l.Epoch+l.span())
	case sequence>>l.Sequence != 0:
		return 0, fmt.Errorf("flake: sequence %d is out of range: must be 0 to %d", sequence, 1<<l.Sequence-1)
	}
	if err := l.checkMachine(machine); err != nil {
		return 0, err
	}
	return ID((milli-l.Epoch)<<l.low() | uint64(machine)<<l.Sequence | uint64(sequence)), nil
}

// Notional returns the id with the time t, machine 0 and sequence 0: the lowest id that any
// machine can make in that millisecond, as a bound for scans over ids. A time outside the
// layout's range counts as the nearest time in it.
func (l Layout) Notional(t time.Time) ID { return ID(l.since(t) << l.low()) }

// Span returns the lowest and highest ids from the millisecond of first to the millisecond of
// last, both included, for `WHERE id BETWEEN $1 AND $2`. If last is before first, lowest is
// above highest, and the scan finds nothing.
func (l Layout) Span(first, last time.Time) (lowest, highest ID) {
	return l.Notional(first), l.Notional(last) | (1<<l.low() - 1)
}

func (l Layout) since(t time.Time) uint64 {
	return min(max(tick.MilliOf(t), l.Epoch)-l.Epoch, l.span())
}
