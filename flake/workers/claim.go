package workers

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Claim is a number, from when it was claimed until it is lost or given back. It is
// the bound of generators: no id that they make with the number comes twice.
type Claim struct {
	owner *Owner
	key   string
	entry Entry // as it is known to be in the store
	floor Floor
	after uint64 // the ids of a node that found its marks begin above this
	other uint64 // those of one that did not, above this too

	resumed bool // the node had it before its restart

	mark atomic.Uint64 // confirmed
	lost chan struct{}
}

// Number is the number.
func (c *Claim) Number() uint64 { return c.entry.Number }

// Resumed reports whether the node had the number before its restart.
func (c *Claim) Resumed() bool { return c.resumed }

// After is the time that ids must be later than: others may have made ids up to it. A
// generator that did not find its own mark does not know which ids this node made,
// either, and begins later.
func (c *Claim) After(found bool) uint64 {
	if found {
		return c.after
	}
	return max(c.after, c.other)
}

// Milli is the confirmed mark: the time that no id may be later than.
func (c *Claim) Milli() uint64 { return c.mark.Load() }

// Lost is closed when the number is another's. Ids up to Milli are still this node's.
func (c *Claim) Lost() <-chan struct{} { return c.lost }

func (c *Claim) isLost() bool {
	select {
	case <-c.lost:
		return true
	default:
		return false
	}
}

// Extend asks for a mark past milli, and waits for it until ctx is done. While the store
// does not answer, it fails at once.
func (c *Claim) Extend(ctx context.Context, milli uint64) error {
	err := c.owner.await(ctx, func() bool { return milli <= c.Milli() || c.isLost() })
	if err == nil && milli > c.Milli() {
		err = fmt.Errorf("%w: worker id %d is another's by now", tick.ErrTimestampNotSaved, c.Number())
	}
	return err
}

// confirm records that the store has the value.
func (c *Claim) confirm(v Value) {
	c.entry.Value, c.entry.text = v, v.String()
	c.mark.Store(max(c.mark.Load(), v.Mark))
}
