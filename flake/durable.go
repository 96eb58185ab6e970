package flake

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
)

const (
	// Window, 3 s, is how far ahead of the clock the mark is set, and so the longest
	// that a start after a crash waits, and the longest that ids go on while
	// the file cannot be written.
	Window = durable.Window

	// DefaultDowntime is the original's allowable_downtime, 30 days.
	DefaultDowntime = durable.DefaultDowntime
)

// Options are what [Open] can do without. The zero value is fit for use.
type Options struct {
	// AllowableDowntime is how long ids may not have been made before a start
	// is refused with [ErrClockAdvanced], for the clock may be wrong. 0 means
	// [DefaultDowntime]; below 0 is an error.
	AllowableDowntime time.Duration

	// Clock is the clock; nil means [SystemClock].
	Clock Clock

	// Logger is told of a new file, a wait, and trouble with the file and its
	// end; nil means nobody is.
	Logger *slog.Logger

	// Saved is told how long each attempt to write the file took; nil means
	// nobody is.
	Saved func(time.Duration)
}

// Durable is a [Generator] that keeps its promise across restarts: no id it
// hands out was handed out before by one on the same file and worker, and each
// is higher. Close it when done.
type Durable struct {
	*Generator
	keeper *durable.Keeper
}

// Open locks the file at path, creating it if there is none, and gives a
// generator whose ids are later than its mark. After a crash that may mean to
// wait for up to [Window]; ctx can end the wait.
//
// It fails with [ErrClockBackwards] if the mark is further ahead of the clock,
// [ErrClockAdvanced] if it is older than the allowable downtime, and otherwise
// if the file is locked, is no mark, is damaged, or cannot be written; the text
// says what to do. It never starts anew where a file was.
func Open(ctx context.Context, path string, worker Worker, o Options) (*Durable, error) {
	g, err := NewGenerator(worker, o.Clock)
	if err != nil {
		return nil, err
	}
	keeper, err := durable.Open(ctx, path, g.core, durable.Options{
		AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved,
	})
	if err != nil {
		return nil, err
	}
	return &Durable{g, keeper}, nil
}

// Mark is the time that no id is later than, as it stands in the file.
func (d *Durable) Mark() time.Time { return d.keeper.Mark() }

// LastSaved is the time at which the file was last written, and the trouble
// there has been with it since, or nil.
func (d *Durable) LastSaved() (time.Time, error) { return d.keeper.LastSaved() }

// Ready tells whether there are ids now, and the file can be written, without
// which there soon are none. If not it tells what the trouble is.
func (d *Durable) Ready() error { return cmp.Or(d.Generator.Ready(), d.keeper.Ready()) }

// Close ends the generator, brings the mark back from ahead of the clock, so
// that the next start need not wait, and gives up the lock. Calls of Next under
// way and later fail with [ErrClosed]. Close waits for the disk; if it cannot
// write, the next start waits instead. A second Close gives what the first did.
func (d *Durable) Close() error { return d.keeper.Close() }
