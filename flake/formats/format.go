package formats

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Format is one layout of ids: what their bits mean, and their texts.
type Format struct {
	Name string // that of its [Kind]
	Size int    // of an id in bytes, 8 to 16
	Meta bool   // whether an id takes a metabyte

	epoch, unit uint64  // of the time, in ms
	fields      []Field // the time, then the others down to the lowest bit, with the values that never differ

	append func(dst []byte, id Number) []byte // the canonical text
	parse  func(text string) (Number, error)  // all texts of its own

	// What follows from the fields, as [Format.made] has it.
	lowest, highest  Number // ids of time 0
	sequence, random Number // masks
	step, meta       int    // the place of the lowest bit of sequence and metabyte
}

// A Field is a part of an id.
type Field struct {
	Name   string // "time", "worker", "sequence" or the format's own word
	Value  uint64 // of time: ms since 1970
	Offset int    // of its first bit, from the id's most significant one
	Width  int    // in bits
}

// made returns the format with what follows from its fields. Only the first has an offset.
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
			f.lowest, f.highest = f.lowest.add(always), f.highest.add(always)
		} else if field.Name != "time" {
			f.highest = f.highest.add(mask)
		}
	}
	return &f
}

// String returns the name.
func (f *Format) String() string { return f.Name }

// shift returns the place of the lowest bit of a field.
func (f *Format) shift(field *Field) int { return 8*f.Size - field.Offset - field.Width }

// Fields takes an id apart, the most significant field first.
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

// Who returns those of an id's fields that tell which generator made it.
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

// Span returns the lowest and the highest id that any generator can make from the
// millisecond first to last, both included and since 1970; an error for a time that the
// format cannot hold.
func (f *Format) Span(first, last uint64) (lowest, highest Number, err error) {
	low, err1 := f.at(first)
	high, err2 := f.at(last)
	if err := errors.Join(err1, err2); err != nil {
		return Number{}, Number{}, err
	}
	return low.add(f.lowest), high.add(f.highest), nil
}

// at returns the bits of a time.
func (f *Format) at(milli uint64) (Number, error) {
	field := f.fields[0]
	ticks := (milli - f.epoch) / f.unit
	if milli < f.epoch || ticks > 1<<field.Width-1 {
		return Number{}, fmt.Errorf("flake: ids of %s have no time %d ms since 1970", f.Name, milli)
	}
	return Number{Lo: ticks}.shifted(f.shift(&field)), nil
}

// withMeta returns an id whose metabyte is 0 with another, if its format has one.
func (f *Format) withMeta(id Number, meta uint8) Number {
	if f.Meta {
		id = id.add(Number{Lo: uint64(meta)}.shifted(f.meta))
	}
	return id
}

// Place returns the number by which an id is compared with others of its format: in a run
// each is the next number. It has no random bits, which need not tell two ids apart.
func (f *Format) Place(id Number) Number {
	id.Lo &^= f.random.Lo
	return id.shifted(-f.step).add(id.shifted(128 - f.step))
}

// AtPlace is the reverse of [Format.Place], but for random bits.
func (f *Format) AtPlace(place Number) Number {
	return place.shifted(f.step).add(place.shifted(f.step - 128))
}

// A Run is ids of a format that follow each other by sequence: First and the Count-1
// after it.
type Run struct {
	First  Number
	Count  int
	Format *Format // nil: they are the numbers after First
}

// At returns the id at place i, 0 <= i < Count, with random bits of its own, if its
// format has such: so it is asked for but once.
func (r Run) At(i int) Number {
	f := r.Format
	if f == nil {
		return r.First.Plus(i)
	}
	id := r.First.add(Number{Lo: uint64(i)}.shifted(f.step))
	if f.random.Lo != 0 {
		id.Lo ^= rand.Uint64() & f.random.Lo
	}
	return id
}

// FollowedBy reports whether another run goes on where this one ends, in the same tick,
// so that both are one.
func (r Run) FollowedBy(next Run) bool {
	if r.Format == nil {
		return r.First.Plus(r.Count) == next.First
	}
	f, after := r.Format, r.First.add(Number{Lo: uint64(r.Count)}.shifted(r.Format.step))
	return (next.First.Hi&f.sequence.Hi != 0 || next.First.Lo&f.sequence.Lo != 0) &&
		next.First.Hi == after.Hi && (next.First.Lo^after.Lo)&^f.random.Lo == 0
}
