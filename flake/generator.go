package flake

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/tick"
)

// Options configure a [Generator]. The zero value is valid.
type Options struct {
	// Clock returns the time in milliseconds since 1970-01-01 UTC. Many goroutines
	// call it at once. nil means [SystemClock].
	Clock func() uint64

	// AllowableDowntime, used by [Open] only, is the age of the last id from which
	// a start fails with [ErrClockAdvanced], since the clock may be wrong. 0 means
	// 30 days; a negative value is an error.
	AllowableDowntime time.Duration

	// Logger, used by [Open] only, logs a new file, a wait, and the start and end of
	// each problem with the file. nil means no log.
	Logger *slog.Logger

	// Saved, used by [Open] only, is called with the duration of each attempt to
	// write the file. It may be nil.
	Saved func(time.Duration)

	// Marks, used by [Open] only, is a file from [OpenMarks] that also keeps this
	// generator's mark. The mark's name is path, which must not contain a space or
	// slash. nil means a separate file.
	Marks *Marks

	// Bound, used by [Open] only, is a further limit on ids, such as a claim from
	// package workers: its After and Milli restrict their time. It may be nil.
	Bound Bound
}

// Bound is a limit on ids in addition to that of the file.
type Bound = durable.Bound

// The errors of this package and of the other formats that a caller may branch on.
// The atom that an Erlang caller sees is in brackets.
var (
	// ErrClockBackwards: the clock is behind the last id. The error goes away once
	// the clock has caught up.
	ErrClockBackwards = tick.ErrClockBackwards

	// ErrClockAdvanced: the last id is older than [Options.AllowableDowntime].
	ErrClockAdvanced = tick.ErrClockAdvanced

	// ErrTimestampNotSaved: the time could not be made durable, so an id returned
	// now might be repeated after a crash. The error goes away once the file can be
	// written.
	ErrTimestampNotSaved = tick.ErrTimestampNotSaved

	// ErrClosed: the generator was closed.
	ErrClosed = tick.ErrClosed

	// ErrBase: a base is not from 2 to 62.
	ErrBase = digits.ErrBase
)

const perMilli = 1 << 16 // ids of a millisecond

var shape = tick.Shape{First: 0, Last: tick.MaxLast, Unit: 1, PerTick: perMilli}

// Nexter returns ids one by one: a generator of any format, or, in package client,
// the ids of a node (IDs) and those leased from it (Leased).
type Nexter[ID any] interface {
	// Next returns the next id. It may wait until ctx is done.
	Next(ctx context.Context) (ID, error)
}

// Generator makes ids: each higher than the last, never ahead of its clock, at most
// 65,536 a millisecond, up to the year 6429. Any number of goroutines may use one;
// it takes no locks and allocates nothing. On a zero Generator, Next and similar
// methods fail.
type Generator struct {
	worker Worker
	core   durable.Core[*tick.Generator]
}

// NewGenerator returns a generator that saves nothing: the caller must be sure that no
// earlier one with this worker has made ids for the same time (otherwise use [Open]).
// A worker above [MaxWorker] is an error.
func NewGenerator(worker Worker, o Options) (*Generator, error) {
	if worker > MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	ids, err := tick.New(shape, o.Clock)
	if err != nil {
		return nil, err
	}
	return &Generator{worker: worker, core: durable.Core[*tick.Generator]{Source: ids}}, nil
}

// Open returns a generator whose ids are unique across restarts: each is higher than
// all that were made with the same file and worker. Close it when done.
//
// Open locks the file at path, which it creates if it does not exist. The generator
// makes only ids later than the mark in the file, which stays up to 3 s ahead of the
// clock: after a crash Open may wait that long, or until ctx is done.
//
// Open fails with [ErrClockBackwards] if the mark is more than 3 s ahead of the
// clock, and with [ErrClockAdvanced] if it is older than the allowable downtime. It
// also fails if the file is locked, is not a mark, is damaged, or cannot be written;
// the text says what to do. Open never overwrites a file that it cannot use.
func Open(ctx context.Context, path string, worker Worker, o Options) (*Generator, error) {
	g, err := NewGenerator(worker, o)
	if err != nil {
		return nil, err
	}
	if err := g.core.Open(ctx, path, durable.Options(o)); err != nil {
		return nil, err
	}
	return g, nil
}

// Close closes the generator: current and later calls fail with [ErrClosed]. If
// [Open] returned it, Close moves the mark back to the clock, so that the next start
// need not wait, and unlocks the file. Close waits for the disk; if it cannot write,
// the next start waits instead. Later calls return the same error.
func (g *Generator) Close() error { return g.core.Close() }

// Next returns the next id. If the 65,536 ids of a millisecond are used up, it waits for
// the next millisecond, yielding the processor; if ctx is done first, it returns ctx's
// cause. It fails with [ErrClockBackwards] while the clock is behind the last id,
// [ErrTimestampNotSaved] or [ErrClosed].
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	err = g.next(ctx, &id)
	return id, err
}

// next keeps Next small enough to be inlined, so that the id is written in place:
// a returned array would be copied.
func (g *Generator) next(ctx context.Context, id *ID) error {
	milli, first, err := g.core.Source.One(ctx)
	if err == nil {
		id.set(milli, uint64(g.worker)<<16|uint64(first))
	}
	return err
}

// NextN fills dst with ids in ascending order. It waits and fails like
// [Generator.Next], and returns the number of ids filled in, which is less than
// len(dst) only if it fails.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) {
	done := 0
	for done < len(dst) {
		milli, first, n, err := g.core.Source.Reserve(ctx, len(dst)-done)
		if err != nil {
			return done, err
		}
		low := uint64(g.worker)<<16 | uint64(first)
		for i := range n {
			dst[done+i].set(milli, low+uint64(i))
		}
		done += n
	}
	return done, nil
}

// Reserve returns up to n ids of one millisecond, at the cost of one. It waits and
// fails like [Generator.Next], and fails if n is less than 1.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	if n < 1 {
		return Run{}, fmt.Errorf("flake: cannot reserve %d ids, only 1 or more", n)
	}
	milli, first, count, err := g.core.Source.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return Run{Make(milli, g.worker, uint16(first)), count}, nil
}

// CatchUp sleeps until the clock is no longer behind: call it after
// [ErrClockBackwards]. If ctx is done first, it returns ctx's cause.
func (g *Generator) CatchUp(ctx context.Context) error { return g.core.CatchUp(ctx) }

// Ready returns nil if Next would succeed and the file, if any, can be written.
// Otherwise it returns the error from Next or from the file: without the file, ids
// soon run out.
func (g *Generator) Ready() error { return g.core.Ready() }

// Behind is how far the clock is behind the last id, or 0 if it is not: the least
// time until Next succeeds again.
func (g *Generator) Behind() time.Duration { return g.core.Behind() }

// Worker is the worker of every id of the generator.
func (g *Generator) Worker() Worker { return g.worker }

// PerTick is the number of ids per millisecond.
func (g *Generator) PerTick() int { return g.core.Source.PerTick() }

// Waits is the number of calls that waited because the ids of a millisecond were used
// up.
func (g *Generator) Waits() uint64 { return g.core.Source.Waits() }

// Last returns the time, in milliseconds since 1970-01-01 UTC, and the sequence of
// the last id.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	milli, used := g.core.Source.Last()
	return milli, uint16(max(used, 1) - 1)
}

// Mark is the mark in the file, which no id is later than, or the zero time without
// a file.
func (g *Generator) Mark() time.Time { return g.core.Mark() }

// LastSaved returns when the file was last written, or the zero time without a file,
// and the error of a later attempt, if any.
func (g *Generator) LastSaved() (time.Time, error) { return g.core.LastSaved() }

// Run is a range of ids in sequence: First and the Count-1 after it.
type Run = RunOf[ID]

// RunOf is a range of ids of any format in sequence: First and the Count-1 after it.
// If the format has random bits, they are those of First.
type RunOf[ID interface{ Plus(i int) ID }] struct {
	First ID
	Count int
}

// At returns the id at index i, 0 <= i < Count.
func (r RunOf[ID]) At(i int) ID { return r.First.Plus(i) }

// New returns an id and needs no setup: the first call in a process chooses a random
// worker id. Any number of goroutines may call it. Ids ascend while the process
// runs: if the clock is set back, their time stays ahead of it. If the 65,536 ids of
// a millisecond are used up, New waits for the next millisecond.
//
// Nothing is kept on disk. Two processes make the same id only if they make ids in
// the same millisecond and chose the same 47 random bits. After a restart with the
// clock set back, ids may be below earlier ones. If a system must not depend on
// chance, or depends on that order, use [Open].
func New() ID {
	id, err := standard().Next(context.Background())
	if err != nil { // never, with this clock
		panic(err)
	}
	return id
}

var standard = sync.OnceValue(func() *Generator {
	g, err := NewGenerator(RandomWorker(), Options{Clock: tick.ForwardClock()})
	if err != nil {
		panic(err)
	}
	return g
})

// SystemClock returns a clock that follows the machine's wall clock but costs only as
// much as its monotonic clock, which is half. A step of the wall clock takes effect within
// a millisecond of running time. Without steps the readings never decrease and are
// never ahead of the wall clock.
//
// A step ahead by more than 3 s takes effect only after the wall clock has stayed there
// for a minute; until then the clock ignores it, since once ids have a time far ahead, no
// more can be made until that time comes. On Linux, time that the machine spends asleep
// does not count as a step.
func SystemClock() func() uint64 { return tick.SystemClock() }

// MonotonicClock returns a clock that reads the machine's wall clock once, now, and then
// advances with monotonic time. Later steps of the wall clock have no effect, so ids
// neither stop nor jump when it is set.
//
// The time in ids then differs from the wall clock by all its steps, and on Linux by all
// the time that the machine has been asleep, until the program makes another clock. The
// next generator may find its mark ahead of its clock, and wait or fail as [Open] says:
// no id repeats.
func MonotonicClock() func() uint64 { return tick.MonotonicClock() }

// Marks is a file that holds the marks of several generators in a program, of any
// format, each under a name. One write a second covers all of them. Writes stop while
// no ids are made: the next call then waits for the disk, or fails if it is one that
// does not wait. Close closes the generators too.
type Marks = durable.Marks

// OpenMarks locks the file at path, which the first generator creates if it does not
// exist. It fails if the file is locked, does not hold marks, or is damaged. Problems
// with the file and their end are logged, unless log is nil.
//
// A file that [Open] made for one generator can be used: its mark has the empty name,
// which must be opened before others. A mark stays in the file after its name is no
// longer used. A new name starts without a mark or, if the file path-name of an older
// node exists, after the mark in that file.
func OpenMarks(path string, log *slog.Logger) (*Marks, error) { return durable.OpenMarks(path, log) }

// CheckMarks returns the error of [OpenMarks] for a file, but ignores locks. It changes
// nothing.
func CheckMarks(path string) error { return durable.CheckMarks(path) }

// RaiseMark raises the mark with the empty name in a file, which [Open] uses, to a time,
// so that later ids are after it. It creates the file if it does not exist, never lowers
// a mark, and returns the resulting one. It fails as [OpenMarks] does, or if the file
// cannot be written.
func RaiseMark(path string, to time.Time) (time.Time, error) {
	milli, err := durable.RaiseMark(path, uint64(max(to.UnixMilli(), 0)))
	return time.UnixMilli(int64(milli)).UTC(), err
}
