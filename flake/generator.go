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

// Options configure a [Generator]. The zero value is valid. The fields after Clock are used
// only by [Open].
type Options struct {
	// Clock returns the time in milliseconds since 1970-01-01 UTC. It must be safe for
	// concurrent use. nil means [SystemClock].
	Clock func() uint64

	// AllowableDowntime is the longest time that may have passed since the last id. If more has
	// passed, Open fails with [ErrClockAdvanced], because the clock may be wrong. 0 means 30
	// days; a negative value is an error.
	AllowableDowntime time.Duration

	// Logger receives a record for a new file, for a wait, and for the start and end of each
	// problem with the file. nil means no logging.
	Logger *slog.Logger

	// Saved is called with the duration of each attempt to write the file. It may be nil.
	Saved func(time.Duration)

	// Marks is a shared file from [OpenMarks] in which to keep this generator's mark. Open's
	// path is then the mark's name, and must not contain a space or slash. nil means a separate
	// file.
	Marks *Marks

	// Bound is another limit on ids, such as a claim from package workers: its After and Milli
	// methods restrict the time in ids. It may be nil.
	Bound Bound
}

// Bound is a limit on ids in addition to the mark in the file.
type Bound = durable.Bound

// These are the errors that a caller may branch on, from this package and those of the other
// formats. Parentheses at the end of an error text contain the atom that an Erlang caller sees.
var (
	// ErrClockBackwards means that the clock is behind the last id. Ids can be made again once
	// the clock has caught up.
	ErrClockBackwards = tick.ErrClockBackwards

	// ErrClockAdvanced means that the last id is older than [Options.AllowableDowntime].
	ErrClockAdvanced = tick.ErrClockAdvanced

	// ErrTimestampNotSaved means that the time could not be saved, so an id returned now might
	// be repeated after a crash. Ids can be made again once the file can be written.
	ErrTimestampNotSaved = tick.ErrTimestampNotSaved

	// ErrClosed means that the generator was closed.
	ErrClosed = tick.ErrClosed

	// ErrBase means that a base is not in the range 2 to 62.
	ErrBase = digits.ErrBase
)

const perMilli = 1 << 16 // ids per millisecond

// Nexter returns ids one by one. The generators of all formats implement it. So do two types of
// package client: IDs, which requests ids from a node, and Leased, which leases them.
type Nexter[ID any] interface {
	// Next returns the next id. It may wait until ctx is done.
	Next(ctx context.Context) (ID, error)
}

// Generator makes ids, each higher than the last and never ahead of its clock: at most 65,536
// per millisecond, up to the year 6429. Any number of goroutines may use a Generator; it takes
// no locks and allocates nothing. On a zero Generator, Next and similar methods fail.
type Generator struct {
	worker Worker
	ids    *tick.Generator
	marker *durable.Marker
}

// NewGenerator returns a generator that saves nothing: the caller must ensure that no earlier
// generator with this worker has made ids for the same time (otherwise use [Open]). A worker
// above [MaxWorker] is an error.
func NewGenerator(worker Worker, o Options) (*Generator, error) {
	if worker > MaxWorker {
		return nil, fmt.Errorf("flake: worker_id %#x has more than 48 bits", uint64(worker))
	}
	ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: perMilli}, o.Clock)
	if err != nil {
		return nil, err
	}
	return &Generator{worker, ids, durable.New(ids)}, nil
}

// Open returns a generator whose ids are unique across restarts: each is higher than all ids
// made before with the same file and worker. Close it when done.
//
// Open locks the file at path, which it creates if it does not exist. The generator makes only
// ids later than the mark in the file. The mark stays up to 3 s ahead of the clock, so after a
// crash Open may wait that long, unless ctx is done first.
//
// Open fails with [ErrClockBackwards] if the mark is more than 3 s ahead of the clock, and
// with [ErrClockAdvanced] if the mark is older than the allowable downtime. It also fails if the
// file is locked, does not hold a mark, is damaged, or cannot be written; the error text says
// what to do. Open never overwrites a file that it cannot use.
func Open(ctx context.Context, path string, worker Worker, o Options) (*Generator, error) {
	g, err := NewGenerator(worker, o)
	if err != nil {
		return nil, err
	}
	if g.marker, err = durable.Open(ctx, path, g.ids, durable.Options(o)); err != nil {
		return nil, err
	}
	return g, nil
}

// Close closes the generator: current and later calls for ids fail with [ErrClosed]. If Open
// returned the generator, Close moves the mark back to the clock, so that the next Open need
// not wait, and unlocks the file. Close waits for the disk; if the mark cannot be written, the
// next Open waits instead. Later calls to Close return the same error.
func (g *Generator) Close() error { return g.marker.Close() }

// Next returns the next id. If the 65,536 ids of a millisecond are used up, it waits for the
// next millisecond, yielding the processor; if ctx is done first, it returns ctx's cause. It
// fails with [ErrClockBackwards] while the clock is behind the last id, or with
// [ErrTimestampNotSaved] or [ErrClosed].
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	err = g.next(ctx, &id)
	return id, err
}

// next keeps Next small enough to be inlined, so that the id is written in place, not copied.
func (g *Generator) next(ctx context.Context, id *ID) error {
	milli, first, err := g.ids.One(ctx)
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
		milli, first, n, err := g.ids.Reserve(ctx, len(dst)-done)
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

// Reserve returns 1 to n ids of one millisecond, at the cost of a single id. It waits and fails
// like [Generator.Next], and also fails if n is less than 1.
func (g *Generator) Reserve(ctx context.Context, n int) (Run, error) {
	milli, first, count, err := g.ids.Reserve(ctx, n)
	if err != nil {
		return Run{}, err
	}
	return Run{Make(milli, g.worker, uint16(first)), count}, nil
}

// CatchUp sleeps until the clock is no longer behind the last id. Call it after
// [ErrClockBackwards]. If ctx is done first, it returns ctx's cause.
func (g *Generator) CatchUp(ctx context.Context) error { return g.marker.CatchUp(ctx) }

// Ready returns nil if Next would succeed and the file, if any, can be written. Otherwise it
// returns the error of Next or of the file: if the file cannot be written, Next soon fails.
func (g *Generator) Ready() error { return g.marker.Ready() }

// Behind returns how far the clock is behind the last id, or 0 if it is not behind. Next
// cannot succeed before that time has passed.
func (g *Generator) Behind() time.Duration { return g.marker.Behind() }

// Worker returns the worker in every id of the generator.
func (g *Generator) Worker() Worker { return g.worker }

// PerTick returns the number of ids per millisecond.
func (g *Generator) PerTick() int { return g.ids.PerTick() }

// Waits returns the number of calls that waited because the ids of a millisecond were used up.
func (g *Generator) Waits() uint64 { return g.ids.Waits() }

// Last returns the time, in milliseconds since 1970-01-01 UTC, and the sequence of
// the last id.
func (g *Generator) Last() (milli uint64, sequence uint16) {
	milli, used := g.ids.Last()
	return milli, uint16(max(used, 1) - 1)
}

// Mark returns the mark in the file, an upper bound on the times of ids, or the zero time if
// there is no file.
func (g *Generator) Mark() time.Time { return g.marker.Mark() }

// LastSaved returns when the file was last written, or the zero time if there is no file, and
// the error of the latest attempt if that failed.
func (g *Generator) LastSaved() (time.Time, error) { return g.marker.LastSaved() }

// Run is a run of consecutive ids: First and the Count-1 ids after it.
type Run = RunOf[ID]

// RunOf is a run of consecutive ids of any format: First and the Count-1 ids after it. If the
// format has random bits, all ids of the run have First's random bits.
type RunOf[ID interface{ Plus(i int) ID }] struct {
	First ID
	Count int
}

// At returns the id at index i of the run, 0 <= i < Count.
func (r RunOf[ID]) At(i int) ID { return r.First.Plus(i) }

// New returns a new id and needs no setup: the first call in a process chooses a random worker
// id. Any number of goroutines may call New. Ids ascend while the process runs, even if the
// clock is set back; their time is then ahead of the clock. If the 65,536 ids of a millisecond
// are used up, New waits for the next millisecond.
//
// New saves nothing on disk. Two processes make the same id only if they make ids in the same
// millisecond and chose the same 47 random bits. After a restart with the clock set back, new
// ids may be lower than earlier ones. If a system must not rely on chance, or relies on
// ascending ids, use [Open].
func New() ID {
	id, err := standard().Next(context.Background())
	if err != nil { // never happens with this clock
		panic(err)
	}
	return id
}

var standard = sync.OnceValue(func() *Generator {
	return digits.Must(NewGenerator(RandomWorker(), Options{Clock: tick.ForwardClock()}))
})

// SystemClock returns a clock that follows the machine's wall clock. Reading it costs only about
// half as much as reading the wall clock, and the same as reading the monotonic clock. A step of
// the wall clock takes effect within a millisecond of running time. If the wall clock is never
// stepped, the readings never decrease and are never ahead of it.
//
// A forward step of more than 3 s takes effect only after the wall clock has stayed that far
// ahead for a minute. Otherwise ids could have a time far ahead; if the wall clock were then
// corrected, no more ids could be made until that time. On Linux, time that the machine spends
// asleep does not count as a step.
func SystemClock() func() uint64 { return tick.SystemClock() }

// MonotonicClock reads the machine's wall clock once and returns a clock that continues from
// there with monotonic time. Later steps of the wall clock have no effect: ids neither stop
// nor jump when it is set.
//
// The time in ids then differs from the wall clock by the sum of its steps and, on Linux, by
// the time that the machine has been asleep, until the program makes a new clock. The next
// generator may find its mark ahead of its clock; [Open] then waits or fails, so no id repeats.
func MonotonicClock() func() uint64 { return tick.MonotonicClock() }

// Marks keeps the marks of a program's generators in one file, each under a name. The
// generators can have any format. One write per second covers all marks. Writes stop while no
// ids are made. The next call for an id then waits for the disk; a method that never waits fails
// instead. Close also closes the generators.
type Marks = durable.Marks

// OpenMarks locks the file at path, which the first generator creates if it does not exist. It
// fails if the file is locked, does not hold marks, or is damaged. log receives a record for
// the start and end of each problem with the file; it may be nil.
//
// A file that [Open] made for one generator can be used too: its mark has the empty name. Open
// the generator with that name before any other. A mark stays in the file even if its name is
// no longer used. A new name starts without a mark.
func OpenMarks(path string, log *slog.Logger) (*Marks, error) { return durable.OpenMarks(path, log) }

// CheckMarks returns the error that [OpenMarks] would return for the file at path, but ignores
// locks. It changes nothing.
func CheckMarks(path string) error { return durable.CheckMarks(path) }

// RaiseMark raises the mark in the file at path to the given time, so that new ids are later
// than that time. The mark is the one with the empty name, which [Open] uses. RaiseMark
// creates the file if it does not exist, never lowers the mark, and returns the resulting
// mark. It fails if [OpenMarks] would, if the file cannot be written, or for a time after the
// last that an id can have, in the year 6429. A time before 1970 counts as 1970.
func RaiseMark(path string, to time.Time) (time.Time, error) {
	milli, err := durable.RaiseMark(path, tick.MilliOf(to))
	return time.UnixMilli(int64(milli)).UTC(), err
}
