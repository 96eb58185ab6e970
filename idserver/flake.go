package idserver

import (
	"math"

	"github.com/flake-go/flake/flake"
)

// FlakeFormat is the format of package flake: 64 bits of time, 48 of worker, 16
// of sequence. Its own texts are 22 digits of base 62, the canonical one, and
// that of a UUID.
var FlakeFormat Format = flakeFormat{}

type flakeFormat struct{}

func (flakeFormat) Name() string { return "flake" }
func (flakeFormat) Size() int    { return len(flake.ID{}) }
func (flakeFormat) Meta() bool   { return false }

func (flakeFormat) AppendCanonical(dst []byte, id Number) []byte {
	dst, _ = id.flake().AppendText(dst)
	return dst
}

func (flakeFormat) Parse(text string) (Number, error) {
	const uuid = len("00000000-0000-0000-0000-000000000000")
	if len(text) == uuid {
		id, err := flake.Parse(text)
		return fromFlake(id), err
	}
	var id flake.ID
	err := id.UnmarshalText([]byte(text))
	return fromFlake(id), err
}

func (flakeFormat) Fields(n Number) []Field {
	id := n.flake()
	return []Field{
		{"time", id.Milli(), 0, 64},
		{"worker", uint64(id.Worker()), 64, 48},
		{"sequence", uint64(id.Sequence()), 112, 16},
	}
}

func (flakeFormat) Span(first, last uint64) (lowest, highest Number, err error) {
	return fromFlake(flake.Make(first, 0, 0)), fromFlake(flake.Make(last, flake.MaxWorker, math.MaxUint16)), nil
}
