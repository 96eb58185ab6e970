package client

import (
	"fmt"
	"iter"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Format is the constraint of the id types: [flake.ID], [snowflake.ID], [sno.ID], [uuidv7.ID] and
// [ulid.ID]. The ids of flake-idgen are of type [snowflake.ID] too.
type Format interface {
	flake.ID | snowflake.ID | sno.ID | uuidv7.ID | ulid.ID
}

var (
	flakeFormat = formats.KindOf("flake").Format(nil)
	snoFormat   = formats.KindOf("sno").Format(nil)
	uuidFormat  = formats.KindOf("uuidv7").Format(nil)
	ulidFormat  = formats.KindOf("ulid").Format(nil)

	// snowflakeFormat is for all generators with ids of 64 bits. Only the node knows their layouts, which
	// have at most 22 bits below the time.
	snowflakeFormat = formats.SnowflakeFormat(snowflake.Layout{Time: 42, Sequence: 22})
)

// formatOf returns the format of the ids of a type.
func formatOf[ID Format]() *formats.Format {
	switch any(*new(ID)).(type) {
	case flake.ID:
		return flakeFormat
	case sno.ID:
		return snoFormat
	case uuidv7.ID:
		return uuidFormat
	case ulid.ID:
		return ulidFormat
	}
	return snowflakeFormat
}

// Run is a run of consecutive ids: First and the Count-1 ids after it. If the format has
// random bits, all ids share those of First.
type Run[ID Format] struct {
	First ID
	Count int
}

// At returns the id at index i, 0 <= i < Count.
func (r Run[ID]) At(i int) ID {
	return idOf[ID](formatOf[ID]().Plus(numberOf(r.First), i))
}

// All returns the ids in ascending order.
func (r Run[ID]) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i := range r.Count {
			if !yield(r.At(i)) {
				return
			}
		}
	}
}

func numberOf[ID Format](id ID) (n formats.Number) {
	switch id := any(&id).(type) {
	case *flake.ID:
		return formats.NumberOf(string(id[:]))
	case *uuidv7.ID:
		return formats.NumberOf(string(id[:]))
	case *ulid.ID:
		return formats.NumberOf(string(id[:]))
	case *sno.ID:
		return formats.NumberOf(string(id[:]))
	case *snowflake.ID:
		n.Lo = uint64(*id)
	}
	return n
}

func idOf[ID Format](n formats.Number) (id ID) {
	switch id := any(&id).(type) {
	case *flake.ID:
		n.AppendOctets(id[:0], len(id))
	case *uuidv7.ID:
		n.AppendOctets(id[:0], len(id))
	case *ulid.ID:
		n.AppendOctets(id[:0], len(id))
	case *sno.ID:
		n.AppendOctets(id[:0], len(id))
	case *snowflake.ID:
		*id = snowflake.ID(n.Lo)
	}
	return id
}

// numberIn returns the id of a format in a node's answer. It fails if the size is wrong.
func numberIn(b []byte, f *formats.Format) (formats.Number, error) {
	if len(b) != f.Size {
		return formats.Number{}, fmt.Errorf("the generator has another format: its ids have %d bytes, "+
			"but those of %s have %d", len(b), f, f.Size)
	}
	return formats.NumberOf(string(b)), nil
}
