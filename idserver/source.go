package idserver

import (
	"context"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
)

// Flake returns the source of a generator's ids.
func Flake(ids *flake.Generator) Source {
	return &sourceOf[flake.Run]{ids, FlakeFormat, uint64(ids.Worker()), func(run flake.Run, _ uint8) Run {
		return Run{fromFlake(run.First), run.Count}
	}}
}

// Sno returns the source of a generator's ids. Its worker is the partition.
func Sno(ids *sno.Generator) Source {
	return &sourceOf[sno.Run]{ids, SnoFormat, uint64(ids.Partition().AsUint16()), func(run sno.Run, meta uint8) Run {
		return Run{fromSno(run.First.WithMeta(meta)), run.Count}
	}}
}

// Snowflake returns the source of a generator's ids. It gives up what is left of a run
// where the sequence, with random starts, goes on from 0.
func Snowflake(ids *snowflake.Generator) Source {
	return &sourceOf[snowflake.Run]{ids, SnowflakeFormat(ids.Layout()), uint64(ids.Machine()), func(run snowflake.Run, _ uint8) Run {
		for run.At(run.Count-1) < run.First {
			run.Count--
		}
		return Run{Number{Lo: uint64(run.First)}, run.Count}
	}}
}

// generatorOf is what generators have alike, but for the runs they make.
type generatorOf[R any] interface {
	Reserve(ctx context.Context, n int) (R, error)
	Last() (milli uint64, sequence uint16)
	Ready() error
	Behind() time.Duration
	Waits() uint64
	PerTick() int
	Mark() time.Time
	LastSaved() (time.Time, error)
}

type sourceOf[R any] struct {
	generatorOf[R]
	format Format
	worker uint64
	run    func(run R, meta uint8) Run
}

func (s *sourceOf[R]) Format() Format { return s.format }
func (s *sourceOf[R]) Worker() uint64 { return s.worker }

func (s *sourceOf[R]) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	run, err := s.generatorOf.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return s.run(run, meta), nil
}

func (s *sourceOf[R]) Last() (uint64, uint32) {
	milli, sequence := s.generatorOf.Last()
	return milli, uint32(sequence)
}
