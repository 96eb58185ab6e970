package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Claim is a number, from the time it is claimed until it is lost or returned. It is the Bound
// of generators, so that no id that they make with the number repeats.
type Claim struct {
	owner *Owner
	key   string
	entry Entry // the value that the store is known to have
	floor Floor
	after uint64 // ids must be later than this

	sent    []Value // values that may have been written since the last confirmed one
	highest uint64  // the highest mark that may ever have been written
	resumed bool    // whether the node had the number before its restart

	mark  atomic.Uint64 // the highest confirmed mark
	lost  chan struct{}
	clean bool // set before lost is closed
}

// Number returns the number.
func (c *Claim) Number() uint64 { return c.entry.Number }

// Resumed reports whether the node had the number before its restart.
func (c *Claim) Resumed() bool { return c.resumed }

// After returns an exclusive lower bound on the times of ids: other nodes may have made ids up
// to then.
func (c *Claim) After() uint64 { return c.after }

// Milli returns the confirmed mark, the latest time an id may have.
func (c *Claim) Milli() uint64 { return c.mark.Load() }

// Lost returns a channel that is closed when the number is lost.
func (c *Claim) Lost() <-chan struct{} { return c.lost }

// Clean reports whether the claim is lost but this node may still make ids up to Milli, because
// all ids of the next owner are later. If the claim is lost and not clean, the node must stop
// making ids immediately.
func (c *Claim) Clean() bool { return c.IsLost() && c.clean }

// IsLost reports whether the number is lost.
func (c *Claim) IsLost() bool {
	select {
	case <-c.lost:
		return true
	default:
		return false
	}
}

// Extend waits until the mark is at least milli, or ctx is done. It fails immediately while the
// store does not respond.
func (c *Claim) Extend(ctx context.Context, milli uint64) error {
	err := c.owner.steps.Await(ctx, c.owner.stopped, func() bool { return milli <= c.Milli() || c.IsLost() })
	switch {
	case err == nil && milli > c.Milli():
		return fmt.Errorf("%w: worker id %d is lost", tick.ErrTimestampNotSaved, c.Number())
	case err == nil, ctx.Err() != nil, errors.Is(err, tick.ErrClosed), errors.Is(err, tick.ErrTimestampNotSaved):
		return err
	}
	return fmt.Errorf("%w: %w", tick.ErrTimestampNotSaved, err)
}

// most limits the number of values sent but not confirmed.
const most = 64

// next returns the value to write: one with a mark of at least milli, unless sent is full.
func (c *Claim) next(milli, nonce uint64) Value {
	if len(c.sent) == most {
		return c.sent[most-1]
	}
	v := c.entry.Value
	v.Mark, v.Nonce = max(c.highest, milli), nonce
	c.highest, c.sent = v.Mark, append(c.sent, v)
	return v
}

func (c *Claim) wrote(v Value) bool { return v == c.entry.Value || slices.Contains(c.sent, v) }

// confirm records that the store has the value.
func (c *Claim) confirm(v Value) {
	c.entry.Value, c.entry.text = v, v.String()
	c.highest, c.sent = max(c.highest, v.Mark), nil
	c.mark.Store(max(c.mark.Load(), v.Mark))
}
