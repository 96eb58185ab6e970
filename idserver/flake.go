package idserver

import (
	"context"
	"math"
	"time"

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

// FlakeGenerator is what a source of FlakeFormat needs. A *flake.Generator is one.
type FlakeGenerator interface {
	Reserve(ctx context.Context, n int) (flake.Run, error)
	Last() (milli uint64, sequence uint16)
	Worker() flake.Worker
	Ready() error
	Behind() time.Duration
	Waits() uint64
}

// Flake returns the source of a generator's ids.
func Flake(ids FlakeGenerator) Source {
	return &flakeSource{ids, keeperOf(ids)}
}

type flakeSource struct {
	ids FlakeGenerator
	keeper
}

func (*flakeSource) Format() Format { return FlakeFormat }

func (s *flakeSource) Reserve(ctx context.Context, n int, _ uint8) (Run, error) {
	run, err := s.ids.Reserve(ctx, n)
	return Run{fromFlake(run.First), run.Count}, err
}

func (s *flakeSource) Last() (uint64, uint32) {
	milli, sequence := s.ids.Last()
	return milli, uint32(sequence)
}

func (s *flakeSource) Worker() uint64 { return uint64(s.ids.Worker()) }

func (s *flakeSource) Ready() error { return s.ids.Ready() }

func (s *flakeSource) Behind() time.Duration { return s.ids.Behind() }

func (s *flakeSource) Waits() uint64 { return s.ids.Waits() }

func (*flakeSource) PerTick() int { return 1 << 16 }
