package loadgen

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
	"github.com/flake-go/flake/idserver"
)

// A Taker makes a call. The ids that it returns are read later, as that takes time of
// its own.
type Taker func(ctx context.Context) (ids, error)

// ids appends the ids of an answer, some that follow each other at a time.
type ids func(dst []span) ([]span, error)

// Call is what a call asks for: N ids of a generator, as texts if Base is not 0, else
// one by its bytes, and several as a lease.
type Call struct {
	Generator, Format string
	N, Base           int
}

// Taker returns what makes the call by way of a door.
func (c Call) Taker(door client.Door) Taker {
	switch c.Format {
	case idserver.FlakeFormat.Name():
		return takerOf[flake.ID](c, door, idserver.FlakeFormat)
	case idserver.SnoFormat.Name():
		return takerOf[sno.ID](c, door, idserver.SnoFormat)
	case idserver.UUIDv7Format.Name():
		return takerOf[uuidv7.ID](c, door, idserver.UUIDv7Format)
	case idserver.ULIDFormat.Name():
		return takerOf[ulid.ID](c, door, idserver.ULIDFormat)
	}
	return takerOf[snowflake.ID](c, door, idserver.SnowflakeFormat(snowflake.Twitter)) // all layouts are read alike
}

func takerOf[ID client.Format](c Call, door client.Door, format idserver.Format) Taker {
	// One IDs a call: one that remembers refuses the ids that are looked for.
	source := func() *client.IDs[ID] { return client.NewIDs[ID](door, c.Generator) }
	switch {
	case c.Base != 0:
		return func(ctx context.Context) (ids, error) {
			texts, err := source().Texts(ctx, c.N, c.Base)
			return func(dst []span) ([]span, error) { return spansOfTexts(dst, texts, format, c.Base) }, err
		}
	case c.N == 1:
		return func(ctx context.Context) (ids, error) {
			id, err := source().Next(ctx)
			return func(dst []span) ([]span, error) { return append(dst, spanOf(id, 1, format)), nil }, err
		}
	}
	return func(ctx context.Context) (ids, error) {
		runs, err := source().Lease(ctx, c.N)
		return func(dst []span) ([]span, error) {
			for _, r := range runs {
				dst = append(dst, spanOf(r.First, r.Count, format))
			}
			return dst, nil
		}, err
	}
}

func spansOfTexts(dst []span, texts []string, format idserver.Format, base int) ([]span, error) {
	if base == client.Canonical {
		base = idserver.Canonical
	}
	for _, text := range texts {
		id, err := idserver.Parse(format, text, base)
		if err != nil {
			return dst, fmt.Errorf("the node answered with %.40q, which is no id of format %s", text, format.Name())
		}
		place := placeOf(id, format.Name())
		dst = append(dst, span{place, place})
	}
	return dst, nil
}

func spanOf[ID client.Format](id ID, count int, format idserver.Format) span {
	var first idserver.Number
	switch id := any(id).(type) {
	case flake.ID:
		first = wide(id)
	case uuidv7.ID:
		first = wide(id)
	case ulid.ID:
		first = wide(id)
	case sno.ID:
		first = idserver.Number{Hi: uint64(binary.BigEndian.Uint16(id[:2])), Lo: binary.BigEndian.Uint64(id[2:])}
	case snowflake.ID:
		first = idserver.Number{Lo: uint64(id)}
	}
	first = placeOf(first, format.Name())
	return span{first, first.Plus(count - 1)}
}

func wide(id [16]byte) idserver.Number {
	return idserver.Number{Hi: binary.BigEndian.Uint64(id[:8]), Lo: binary.BigEndian.Uint64(id[8:])}
}

// placeOf returns the number that an id is compared by. Those of uuidv7 and ulid have their
// halves changed, so that ids that follow each other are numbers that do, and no random
// bits, which may not be all that tells two ids apart.
func placeOf(id idserver.Number, format string) idserver.Number {
	switch format {
	case idserver.UUIDv7Format.Name():
		return idserver.Number{Hi: id.Lo &^ (1<<14 - 1), Lo: id.Hi}
	case idserver.ULIDFormat.Name():
		return idserver.Number{Hi: id.Lo &^ (1<<16 - 1), Lo: id.Hi}
	}
	return id
}

// ID returns the id in a [Result], but for its random bits.
func (c Call) ID(place idserver.Number) idserver.Number {
	switch c.Format {
	case idserver.UUIDv7Format.Name(), idserver.ULIDFormat.Name():
		return idserver.Number{Hi: place.Lo, Lo: place.Hi}
	}
	return place
}
