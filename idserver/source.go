package idserver

import (
	"context"
	"sort"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Flake returns the source of a generator's ids.
func Flake(ids *flake.Generator) Source {
	return &sourceOf[flake.Run, uint16]{ids, FlakeFormat, uint64(ids.Worker()), func(run flake.Run, _ uint8) Run {
		return Run{First: fromFlake(run.First), Count: run.Count}
	}}
}

// Sno returns the source of a generator's ids. Its worker is the partition.
func Sno(ids *sno.Generator) Source {
	return &sourceOf[sno.Run, uint16]{ids, SnoFormat, uint64(ids.Partition().AsUint16()), func(run sno.Run, meta uint8) Run {
		return Run{First: fromSno(run.First.WithMeta(meta)), Count: run.Count}
	}}
}

// Snowflake returns the source of a generator's ids. It gives up what is left of a run
// where the sequence, with random starts, goes on from 0.
func Snowflake(ids *snowflake.Generator) Source {
	return &sourceOf[snowflake.Run, uint32]{ids, SnowflakeFormat(ids.Layout()), uint64(ids.Machine()), func(run snowflake.Run, _ uint8) Run {
		ascending := sort.Search(run.Count, func(i int) bool { return run.At(i) < run.First })
		return Run{First: Number{Lo: uint64(run.First)}, Count: ascending}
	}}
}

// UUIDv7 returns the source of a generator's ids.
func UUIDv7(ids *uuidv7.Generator) Source {
	return &sourceOf[uuidv7.Run, uint16]{ids, UUIDv7Format, uint64(ids.Worker()), func(run uuidv7.Run, _ uint8) Run {
		return Run{fromFlake(flake.ID(run.First)), run.Count, &uuids.Halves}
	}}
}

// ULID returns the source of a generator's ids.
func ULID(ids *ulid.Generator) Source {
	return &sourceOf[ulid.Run, uint16]{ids, ULIDFormat, uint64(ids.Worker()), func(run ulid.Run, _ uint8) Run {
		return Run{fromFlake(flake.ID(run.First)), run.Count, &ulids.Halves}
	}}
}

// generatorOf is what generators have alike, but for the runs they make and the size of
// their sequence.
type generatorOf[R any, S uint16 | uint32] interface {
	Reserve(ctx context.Context, n int) (R, error)
	Last() (milli uint64, sequence S)
	Ready() error
	Behind() time.Duration
	Waits() uint64
	PerTick() int
	Mark() time.Time
	LastSaved() (time.Time, error)
}

type sourceOf[R any, S uint16 | uint32] struct {
	generatorOf[R, S]
	format Format
	worker uint64
	run    func(run R, meta uint8) Run
}

func (s *sourceOf[R, S]) Format() Format { return s.format }
func (s *sourceOf[R, S]) Worker() uint64 { return s.worker }

func (s *sourceOf[R, S]) Reserve(ctx context.Context, n int, meta uint8) (Run, error) {
	run, err := s.generatorOf.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return s.run(run, meta), nil
}

func (s *sourceOf[R, S]) Last() (uint64, uint32) {
	milli, sequence := s.generatorOf.Last()
	return milli, uint32(sequence)
}
