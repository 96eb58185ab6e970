package ulid

import (
	"context"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/halves"
)

var layout = halves.ULID

// Options configure a [Generator]. The zero value is valid.
type Options = flake.Options

// Generator hands out ids: each higher than the last, never ahead of its clock,
// at most 65,536 a millisecond, up to the year 6429. Any number of goroutines may
// use one; it takes no locks and allocates nothing. The zero value has no ids:
// Next and the like fail.
type Generator struct{ ids halves.Generator[ID] }

// NewGenerator returns a generator that starts from nothing and keeps nothing: that
// no earlier one with this worker has handed out ids of this time is the caller's to
// know (or use [Open]). A worker above [flake.MaxWorker] is an error.
func NewGenerator(worker flake.Worker, o Options) (*Generator, error) {
	g := new(Generator)
	if err := g.ids.Init(layout, worker, o); err != nil {
		return nil, err
	}
	return g, nil
}

// Open returns a generator that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file and worker, and each is higher.
// Close it when done. It works and fails as [flake.Open] does.
func Open(ctx context.Context, path string, worker flake.Worker, o Options) (*Generator, error) {
	g := new(Generator)
	if err := g.ids.Open(ctx, path, layout, worker, o); err != nil {
		return nil, err
	}
	return g, nil
}

// New returns an id, with nothing to set up: a worker id is made up at random when
// the process first calls it. Any number of goroutines may call it. Ids ascend
// as long as the process lives, also when the clock is set back: their time is ahead
// of it then. When the 65,536 of a millisecond are used New waits for the next one.
//
// That no other process, nor this one after a restart, makes the same id is as
// likely as that 47 random bits are not the same in two processes of one
// millisecond; nothing is kept on disk. After a restart with the clock set back,
// ids may be below those before. Where a system may rest on no chance, or on that
// order, there is [Open].
func New() ID { return fresh() }

var fresh = halves.Fresh[ID](layout)

// Close ends the generator: calls under way and later fail with [flake.ErrClosed]. One
// that [Open] returned brings its mark back from ahead of the clock, as
// [flake.Generator] does. A second Close returns what the first did.
func (g *Generator) Close() error { return g.ids.Close() }

// Next returns the next id. When those of a millisecond are used it waits for the next
// one, yielding the processor, until ctx is done; that is an error with its cause. It
// fails with [flake.ErrClockBackwards] while the clock is behind the last id,
// [flake.ErrTimestampNotSaved] or [flake.ErrClosed].
func (g *Generator) Next(ctx context.Context) (id ID, err error) {
	err = g.ids.Next(ctx, &id)
	return id, err
}

// NextN fills dst with ids, ascending, a whole range at a time, waiting and failing
// as [Generator.Next] does. It returns the number of ids filled in: less than
// len(dst) only with an error.
func (g *Generator) NextN(ctx context.Context, dst []ID) (int, error) { return g.ids.NextN(ctx, dst) }

// Reserve takes up to n ids of one millisecond, n at least 1, at the price of
// one. It waits and fails as [Generator.Next] does.
func (g *Generator) Reserve(ctx context.Context, n int) (r Run, err error) {
	r.First, r.Count, err = g.ids.Reserve(ctx, n)
	return r, err
}

// CatchUp waits, asleep, until the clock is no longer behind: what to do after
// [flake.ErrClockBackwards]. It fails with the cause of ctx when that is done first.
func (g *Generator) CatchUp(ctx context.Context) error { return g.ids.CatchUp(ctx) }

// Ready returns nil if there are ids now, and the file, if there is one, can be
// written, without which there soon are none. Otherwise it fails as Next would, or
// says what the trouble with the file is.
func (g *Generator) Ready() error { return g.ids.Ready() }

// Behind is how far the clock is behind the last id: how long it takes at least
// until there are ids again. 0: it is not.
func (g *Generator) Behind() time.Duration { return g.ids.Behind() }

// Worker is the worker of every id of the generator.
func (g *Generator) Worker() flake.Worker { return g.ids.Worker() }

// PerTick is how many ids there are a millisecond.
func (g *Generator) PerTick() int { return g.ids.PerTick() }

// Waits is how often a call found the ids of a millisecond used up, and waited.
func (g *Generator) Waits() uint64 { return g.ids.Waits() }

// Last is the time, in milliseconds since 1970-01-01 UTC, and the sequence of the
// last id that is used up: no later one was handed out.
func (g *Generator) Last() (milli uint64, sequence uint16) { return g.ids.Last() }

// Mark is the time that no id is later than, as it stands in the file; the zero time
// without a file.
func (g *Generator) Mark() time.Time { return g.ids.Mark() }

// LastSaved is the time at which the file was last written, and the trouble there
// has been with it since, or nil. It is the zero time without a file.
func (g *Generator) LastSaved() (time.Time, error) { return g.ids.LastSaved() }

// Run is ids that follow each other by sequence: First and the Count-1 after it, whose
// random bits are those of First.
type Run struct {
	First ID
	Count int
}

// At returns the id at place i, 0 <= i < Count.
func (r Run) At(i int) ID { return halves.Plus(r.First, i) }
