package snowflake

import (
	"cmp"
	"context"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
)

// Durable is a [Generator] that keeps its promise across restarts: no id it
// hands out was handed out before by one on the same file, layout and machine,
// and each is of a later millisecond than those. Close it when done.
type Durable struct {
	*Generator
	keeper *durable.Keeper
}

// Open locks the file at path, creating it if there is none, and gives a
// generator whose ids are later than the mark in it. The mark is kept 3 seconds
// ahead of the clock, and so after a crash Open may wait for as long; ctx can
// end the wait.
//
// It fails as [NewGenerator] does; with [ErrClockBackwards] if the mark is
// further ahead of the clock, [ErrClockAdvanced] if it is older than the
// allowable downtime, and otherwise if the file is locked, is no mark, is
// damaged, or cannot be written; the text says what to do. It never starts anew
// where a file was.
func Open(ctx context.Context, path string, l Layout, m Machine, o Options) (*Durable, error) {
	g, err := NewGenerator(l, m, o)
	if err != nil {
		return nil, err
	}
	keeper, err := durable.Open(ctx, path, g.core, durable.Options{AllowableDowntime: o.AllowableDowntime, Logger: o.Logger, Saved: o.Saved})
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
