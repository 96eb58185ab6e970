package idserver

import (
	"math/rand/v2"
	"slices"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Halves are ids of 128 bits whose first half ends with the sequence, and whose second
// with random bits: those of a [Run] do not follow each other as numbers.
type Halves struct{ Sequence, Random uint64 } // the bits of each half

// at returns the id at place i after first, with its random bits.
func (*Halves) at(first Number, i int) Number { return Number{first.Hi + uint64(i), first.Lo} }

// fresh puts random bits of its own into an id.
func (h *Halves) fresh(id Number) Number {
	id.Lo ^= rand.Uint64() & h.Random
	return id
}

// follows tells whether next comes after last in the same millisecond, but for random bits.
func (h *Halves) follows(last, next Number) bool {
	return next.Hi&h.Sequence != 0 && next.Hi == last.Hi+1 && (next.Lo^last.Lo)&^h.Random == 0
}

// UUIDv7Format is the format of package uuidv7. Its own text is that of a UUID.
var UUIDv7Format Format = uuids

var uuids = newHalves(halvesFormat[uuidv7.ID]{
	name: "uuidv7",
	fields: []Field{
		{"time", 0, 0, 48}, {"version", 0, 48, 4}, {"sequence", 0, 52, 12},
		{"variant", 0, 64, 2}, {"worker", 0, 66, 48}, {"random", 0, 114, 14},
	},
	parse: uuidv7.Parse,
	make:  uuidv7.Make,
})

// ULIDFormat is the format of package ulid. Its own text is 26 digits of Crockford's base
// 32; the text of a UUID is read too.
var ULIDFormat Format = ulids

var ulids = newHalves(halvesFormat[ulid.ID]{
	name:   "ulid",
	fields: []Field{{"time", 0, 0, 48}, {"sequence", 0, 48, 16}, {"worker", 0, 64, 48}, {"random", 0, 112, 16}},
	parse:  func(text string) (id ulid.ID, err error) { err = id.Scan(text); return id, err },
	make:   ulid.Make,
})

type halvesFormat[ID halvesID] struct {
	Halves
	name   string
	fields []Field // without values
	parse  func(text string) (ID, error)
	make   func(milli uint64, w flake.Worker, sequence, random uint16) (ID, error)
}

type halvesID interface {
	uuidv7.ID | ulid.ID
	AppendText(dst []byte) ([]byte, error)
}

func newHalves[ID halvesID](f halvesFormat[ID]) *halvesFormat[ID] {
	for _, field := range f.fields {
		switch field.Name {
		case "sequence":
			f.Sequence = 1<<field.Width - 1
		case "random":
			f.Random = 1<<field.Width - 1
		}
	}
	return &f
}

func (f *halvesFormat[ID]) Name() string { return f.name }
func (*halvesFormat[ID]) Size() int      { return len(flake.ID{}) }
func (*halvesFormat[ID]) Meta() bool     { return false }

func (*halvesFormat[ID]) AppendCanonical(dst []byte, id Number) []byte {
	dst, _ = ID(id.flake()).AppendText(dst)
	return dst
}

func (f *halvesFormat[ID]) Parse(text string) (Number, error) {
	id, err := f.parse(text)
	return fromFlake(flake.ID(id)), err
}

func (f *halvesFormat[ID]) Fields(id Number) []Field {
	fields := slices.Clone(f.fields)
	for i, field := range fields {
		half := id.Hi
		if field.Offset >= 64 {
			half = id.Lo
		}
		fields[i].Value = half << (field.Offset % 64) >> (64 - field.Width)
	}
	return fields
}

func (f *halvesFormat[ID]) Span(first, last uint64) (lowest, highest Number, err error) {
	low, err := f.make(first, 0, 0, 0)
	if err != nil {
		return lowest, highest, err
	}
	high, err := f.make(last, flake.MaxWorker, uint16(f.Sequence), uint16(f.Random))
	return fromFlake(flake.ID(low)), fromFlake(flake.ID(high)), err
}
