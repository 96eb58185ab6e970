package loadgen

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
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
	}
	return takerOf[snowflake.ID](c, door, idserver.SnowflakeFormat(snowflake.Twitter)) // all layouts are read alike
}

func takerOf[ID client.Format](c Call, door client.Door, format idserver.Format) Taker {
	source := client.NewIDs[ID](door, c.Generator)
	switch {
	case c.Base != 0:
		return func(ctx context.Context) (ids, error) {
			texts, err := source.Texts(ctx, c.N, c.Base)
			return func(dst []span) ([]span, error) { return spansOfTexts(dst, texts, format, c.Base) }, err
		}
	case c.N == 1:
		return func(ctx context.Context) (ids, error) {
			id, err := source.Next(ctx)
			return func(dst []span) ([]span, error) { return append(dst, spanOf(id, 1)), nil }, err
		}
	}
	return func(ctx context.Context) (ids, error) {
		runs, err := source.Lease(ctx, c.N)
		return func(dst []span) ([]span, error) {
			for _, r := range runs {
				dst = append(dst, spanOf(r.First, r.Count))
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
		dst = append(dst, span{id, id})
	}
	return dst, nil
}

func spanOf[ID client.Format](id ID, count int) span {
	var first idserver.Number
	switch id := any(id).(type) {
	case flake.ID:
		first = idserver.Number{Hi: binary.BigEndian.Uint64(id[:8]), Lo: binary.BigEndian.Uint64(id[8:])}
	case sno.ID:
		first = idserver.Number{Hi: uint64(binary.BigEndian.Uint16(id[:2])), Lo: binary.BigEndian.Uint64(id[2:])}
	case snowflake.ID:
		first = idserver.Number{Lo: uint64(id)}
	}
	return span{first, first.Plus(count - 1)}
}
