package loadgen

import (
	"context"
	"encoding"
	"fmt"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// A Taker makes a call. Parsing the ids takes time, so it is left to the function that a Taker
// returns.
type Taker func(ctx context.Context) (ids, error)

// ids appends the ids of an answer to dst, one span for each run of consecutive ids.
type ids func(dst []span) ([]span, error)

// Call describes a call: it asks a generator for N ids, as text if Base is not 0, otherwise
// one id as bytes or several as a lease.
type Call struct {
	Generator, Format string
	N, Base           int
}

// Taker returns a Taker that makes this call through a door.
func (c Call) Taker(door client.Door) Taker {
	switch c.Format {
	case "flake":
		return takerOf[flake.ID](c, door)
	case "sno":
		return takerOf[sno.ID](c, door)
	case "uuidv7":
		return takerOf[uuidv7.ID](c, door)
	case "ulid":
		return takerOf[ulid.ID](c, door)
	}
	return takerOf[snowflake.ID](c, door)
}

// formatOf returns the format with the given name. It treats unknown formats as snowflakes of any
// layout.
func formatOf(name string) *formats.Format {
	k := formats.KindOf(name)
	if k == nil {
		k = formats.KindOf("snowflake")
	}
	return k.Format(nil)
}

func takerOf[ID client.Format](c Call, door client.Door) Taker {
	format := formatOf(c.Format)
	return func(ctx context.Context) (ids, error) {
		// Each call gets a new IDs, because an IDs refuses repeated ids, and this program looks for them.
		source := client.NewIDs[ID](door, c.Generator)
		switch {
		case c.Base != 0:
			texts, err := source.Texts(ctx, c.N, c.Base)
			return func(dst []span) ([]span, error) { return spansOfTexts(dst, texts, format, c.Base) }, err
		case c.N == 1:
			id, err := source.Next(ctx)
			return func(dst []span) ([]span, error) { return append(dst, spanOf(id, 1, format)), nil }, err
		}
		runs, err := source.Lease(ctx, c.N)
		return func(dst []span) ([]span, error) {
			for _, r := range runs {
				dst = append(dst, spanOf(r.First, r.Count, format))
			}
			return dst, nil
		}, err
	}
}

// spansOfTexts parses texts as ids and appends a span for each.
func spansOfTexts(dst []span, texts []string, format *formats.Format, base int) ([]span, error) {
	for _, text := range texts {
		id, err := format.Parse(text, base)
		if err != nil {
			return dst, fmt.Errorf("the node answered with %.40q, which is not an id in format %s", text, format.Name)
		}
		ordinal := format.Ordinal(id)
		dst = append(dst, span{ordinal, ordinal})
	}
	return dst, nil
}

func spanOf[ID client.Format](id ID, count int, format *formats.Format) span {
	octets, _ := any(id).(encoding.BinaryMarshaler).MarshalBinary() // never fails
	first := format.Ordinal(formats.NumberOf(string(octets)))
	return span{first, first.Plus(count - 1)}
}

// ID returns the id that Example of a [Result] stands for, with all random bits 0.
func (c Call) ID(ordinal formats.Number) formats.Number { return formatOf(c.Format).AtOrdinal(ordinal) }
