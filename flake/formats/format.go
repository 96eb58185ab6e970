package formats

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/flake-go/flake/flake"
)

// A Format is a layout of ids: its fields and text forms.
type Format struct {
	Name string // the name of its [Kind]
	Size int    // number of bytes of an id, 8 to 16
	Meta bool   // whether ids have a metabyte

	// Unordered is how many of the lowest bits may decrease from one id of a generator to the next.
	Unordered int

	epoch, unit uint64  // start and step of the time, in ms
	fields      []Field // most significant first, beginning with the time; Value is set in constant fields

	append func(dst []byte, id Number) ([]byte, error) // the canonical text; the error is always nil
	parse  func(text string) (Number, error)           // any of the format's text forms

	// Computed from the fields by [Format.made].
	lowest, highest         Number // ids with time 0
	sequence, random, fixed Number // masks; fixed is that of the constant fields
	step, meta              int    // positions of the lowest bits of sequence and metabyte
}

// A Field is a part of an id.
type Field struct {
	Name   string // "time", "worker", "sequence" or a name from the format
	Value  uint64 // for the time: ms since 1970
	Offset int    // from the id's most significant bit to the field's, in bits
	Width  int    // in bits
}

// made returns the format with the values that are computed from its fields. Of the fields'
// offsets, only the first must be set.
func (f Format) made() *Format {
	offset := f.fields[0].Offset
	for i := range f.fields {
		field := &f.fields[i]
		field.Offset = offset
		offset += field.Width
		mask := Number{Lo: 1<<field.Width - 1}.shifted(f.shift(field))
		switch field.Name {
		case "sequence":
			f.sequence, f.step = mask, f.shift(field)
		case "random": // in the lower 64 bits
			f.random = mask
		case "meta":
			f.Meta, f.meta = true, f.shift(field)
		}
		if always := (Number{Lo: field.Value}).shifted(f.shift(field)); field.Value != 0 {
			f.lowest, f.highest, f.fixed = f.lowest.add(always), f.highest.add(always), f.fixed.add(mask)
		} else if field.Name != "time" {
			f.highest = f.highest.add(mask)
		}
	}
	return &f
}

// String returns the name.
func (f *Format) String() string { return f.Name }

// shift returns the position of the lowest bit of a field.
func (f *Format) shift(field *Field) int { return 8*f.Size - field.Offset - field.Width }

// Fields returns the fields of an id, the most significant first.
func (f *Format) Fields(id Number) []Field {
	fields := slices.Clone(f.fields)
	for i := range fields {
		field := &fields[i]
		field.Value = id.shifted(-f.shift(field)).Lo & (1<<field.Width - 1)
		if field.Name == "time" {
			field.Value = f.epoch + field.Value*f.unit
		}
	}
	return fields
}

// Who returns the fields that identify the generator of an id, such as the worker or machine.
func Who(fields []Field) (who []Field) {
	for _, f := range fields {
		switch f.Name {
		case "time", "version", "tick_tock", "meta", "variant", "sequence", "random":
		default:
			who = append(who, f)
		}
	}
	return who
}

// Span returns the lowest and highest ids that any generator can make from first to last. Both
// times are included, and are in ms since 1970. Span fails if either is outside the format's range.
func (f *Format) Span(first, last uint64) (lowest, highest Number, err error) {
	low, err1 := f.at(first)
	high, err2 := f.at(last)
	if err := errors.Join(err1, err2); err != nil {
		return Number{}, Number{}, err
	}
	return low.add(f.lowest), high.add(f.highest), nil
}

// Times returns the first and the last time of ids, in ms since 1970.
func (f *Format) Times() (first, last uint64) {
	return f.epoch, f.epoch + f.unit<<f.fields[0].Width - 1
}

// at returns the time's bits, shifted to their position in an id.
func (f *Format) at(milli uint64) (Number, error) {
	field := f.fields[0]
	ticks := (milli - f.epoch) / f.unit // wraps to a huge number if milli is before the epoch
	if ticks > 1<<field.Width-1 {
		return Number{}, fmt.Errorf("flake: format %s has no ids at %d ms since 1970", f.Name, milli)
	}
	return Number{Lo: ticks}.shifted(f.shift(&field)), nil
}

// Ordinal returns a number for comparing ids of the format. Consecutive ids of a run have
// consecutive ordinals. Random bits are left out, because an id is unique without them.
func (f *Format) Ordinal(id Number) Number {
	id.Lo &^= f.random.Lo
	return id.shifted(-f.step).add(id.shifted(128 - f.step))
}

// AtOrdinal is the reverse of [Format.Ordinal]. The random bits of its result are 0.
func (f *Format) AtOrdinal(ordinal Number) Number {
	return ordinal.shifted(f.step).add(ordinal.shifted(f.step - 128))
}

// Plus returns the id that is i places after id in a run. It has the random bits of id.
func (f *Format) Plus(id Number, i int) Number {
	return id.add(Number{Lo: uint64(i)}.shifted(f.step))
}

// Room returns the number of ids in the longest run that begins with id: they have the time and
// the worker of id. It returns 0 if no generator of the format makes id.
func (f *Format) Room(id Number) int {
	// Formats of 128 bits may differ only in where the time ends. If the first 16 bits belong to a time of
	// 48 bits, they are 0 only in early 1970; of a time of 64 bits, they are 0 until the year 10889.
	if f.Size == maxOctets && (id.Hi>>48 == 0) != (f.fields[0].Width > 48) {
		return 0
	}
	if (Number{id.Hi & f.fixed.Hi, id.Lo & f.fixed.Lo}) != f.lowest {
		return 0
	}
	last := f.sequence.shifted(-f.step).Lo
	return int(last - id.shifted(-f.step).Lo&last + 1)
}

// Follows reports whether a generator whose latest id is last may return next. It is false for an
// id that is not above last, unless only the bits that may decrease are lower. A snowflake with
// random_start starts each time anywhere in the sequence; after the clock has been set back, ids of
// sno have lower times.
func (f *Format) Follows(last, next Number) bool {
	order := next.shifted(-f.Unordered).Compare(last.shifted(-f.Unordered))
	return order > 0 || order == 0 && (f.Unordered > 0 || next.Compare(last) > 0)
}

// A Run is a run of consecutive ids: First and the Count-1 ids after it.
type Run struct {
	First  Number
	Count  int
	Format *Format // nil means consecutive numbers
}

// At returns the id at index i, 0 <= i < Count. If the format has random bits, each call
// chooses new ones, so call At only once per id.
func (r Run) At(i int) Number {
	if r.Format == nil {
		return r.First.Plus(i)
	}
	id := r.Format.Plus(r.First, i)
	if r.Format.random.Lo != 0 {
		id.Lo ^= rand.Uint64() & r.Format.random.Lo
	}
	return id
}

// FollowedBy reports whether next continues the run in the same tick, so that the two runs can
// be joined.
func (r Run) FollowedBy(next Run) bool {
	if r.Format == nil {
		return r.First.Plus(r.Count) == next.First
	}
	f, after := r.Format, r.Format.Plus(r.First, r.Count)
	return (next.First.Hi&f.sequence.Hi != 0 || next.First.Lo&f.sequence.Lo != 0) &&
		next.First.Hi == after.Hi && (next.First.Lo^after.Lo)&^f.random.Lo == 0
}

// Number is an id of any format as an unsigned 128-bit number. An id's bytes are big-endian;
// the format's Size says how many there are.
type Number struct{ Hi, Lo uint64 }

// maxOctets is the size of the largest id.
const maxOctets = len(flake.ID{})

// NumberOf converts up to 16 big-endian bytes to a Number.
func NumberOf(octets string) Number {
	var b [maxOctets]byte
	copy(b[maxOctets-len(octets):], octets)
	return of128(b)
}

func of128[ID ~[maxOctets]byte](id ID) Number {
	return Number{binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])}
}

func ofText128[ID ~[maxOctets]byte](id ID, err error) (Number, error) { return of128(id), err }

func (n Number) flake() (id flake.ID) {
	binary.BigEndian.PutUint64(id[:8], n.Hi)
	binary.BigEndian.PutUint64(id[8:], n.Lo)
	return id
}

// Plus returns n + i.
func (n Number) Plus(i int) Number { return n.add(Number{Lo: uint64(i)}) }

func (n Number) add(m Number) Number {
	lo, carry := bits.Add64(n.Lo, m.Lo, 0)
	return Number{n.Hi + m.Hi + carry, lo}
}

// shifted returns n shifted left by the given number of bits, or right if the number is negative.
func (n Number) shifted(left int) Number {
	switch {
	case left >= 64:
		return Number{Hi: n.Lo << (left - 64)}
	case left >= 0:
		return Number{n.Hi<<left | n.Lo>>(64-left), n.Lo << left}
	case left > -64:
		return Number{n.Hi >> -left, n.Lo>>-left | n.Hi<<(64+left)}
	}
	return Number{Lo: n.Hi >> (-left - 64)}
}

// Compare returns -1, 0 or 1 as n is less than, equal to or greater than m.
func (n Number) Compare(m Number) int {
	return cmp.Or(cmp.Compare(n.Hi, m.Hi), cmp.Compare(n.Lo, m.Lo))
}

// AppendOctets appends the last size bytes of the number; size is at most 16.
func (n Number) AppendOctets(dst []byte, size int) []byte {
	id := n.flake()
	return append(dst, id[maxOctets-size:]...)
}

// appendDigits appends the number in a base from 2 to 62, with the digits 0-9A-Za-z in that
// order, without padding. It panics for any other base.
func (n Number) appendDigits(dst []byte, base int) []byte {
	dst, err := n.flake().AppendBase(dst, base)
	if err != nil {
		panic(err)
	}
	return dst
}

// highest returns the highest number that fits in the given number of bytes, 8 to 16.
func highest(size int) Number { return Number{1<<(8*(size-8)) - 1, math.MaxUint64} }
