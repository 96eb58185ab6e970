package ulid

import (
	"context"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/halves"
)

var layout = halves.ULID

// Options configure a [Generator]. The zero value is valid.
type Options = flake.Options

// Generator hands out ids: each higher than the last, never ahead of its clock, at most
// 65,536 a millisecond, up to the year 6429. Any number of goroutines may use one; it takes
// no locks and allocates nothing. The zero value has no ids: Next and the like fail.
//
// Its methods are Next, NextN, Reserve, CatchUp, Close, Ready, Behind, Worker, PerTick,
// Waits, Last, Mark and LastSaved, as those of [flake.Generator].
type Generator = halves.Generator[ID]

// NewGenerator returns a generator that starts from nothing and keeps nothing: that
// no earlier one with this worker has handed out ids of this time is the caller's to
// know (or use [Open]). A worker above [flake.MaxWorker] is an error.
func NewGenerator(worker flake.Worker, o Options) (*Generator, error) {
	return halves.New[ID](layout, worker, o)
}

// Open returns a generator that keeps its promise across restarts: no id it hands
// out was handed out before by one on the same file and worker, and each is higher.
// Close it when done. It works and fails as [flake.Open] does.
func Open(ctx context.Context, path string, worker flake.Worker, o Options) (*Generator, error) {
	return halves.Open[ID](ctx, path, layout, worker, o)
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

// Run is ids that follow each other by sequence: First and the Count-1 after it, whose
// random bits are those of First.
type Run = flake.RunOf[ID]
