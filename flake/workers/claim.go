package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

	sent    []Value // values later than the last confirmed one, which may still be written
	highest uint64  // the highest mark that may ever have been written
	resumed bool    // whether the node had the number before its restart

	mark atomic.Uint64   // the highest confirmed mark
	lost context.Context // done when the number is lost; its cause is the reason
	lose context.CancelCauseFunc
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

// Lost returns a context that is done when the number is lost. Its cause is the reason.
func (c *Claim) Lost() context.Context { return c.lost }

// Clean reports whether the claim is lost but this node may still make ids up to Milli, because
// all ids of the next owner are later. If the claim is lost and not clean, the node must stop
// making ids immediately.
func (c *Claim) Clean() bool {
	l, _ := errors.AsType[loss](context.Cause(c.lost))
	return l.clean
}

// IsLost reports whether the number is lost.
func (c *Claim) IsLost() bool { return c.lost.Err() != nil }

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

// maxSent limits the number of values sent but not confirmed.
const maxSent = 64

// next returns the value to write: one with a mark of at least milli, unless sent is full.
func (c *Claim) next(milli, nonce uint64) Value {
	if len(c.sent) == maxSent {
		return c.sent[maxSent-1]
	}
	v := c.entry.Value
	v.Mark, v.Nonce = max(c.highest+1, milli), nonce // each mark is later, so that marks tell values apart
	c.highest, c.sent = v.Mark, append(c.sent, v)
	return v
}

func (c *Claim) wrote(v Value) bool { return v == c.entry.Value || slices.Contains(c.sent, v) }

// confirm records that the store has the value. Values sent after it may still be written, if the
// store was restored.
func (c *Claim) confirm(v Value) {
	c.entry.Value, c.entry.text = v, v.String()
	c.highest, c.sent = max(c.highest, v.Mark), slices.DeleteFunc(c.sent, func(s Value) bool { return s.Mark <= v.Mark })
	c.mark.Store(max(c.mark.Load(), v.Mark))
}

// extend moves the mark of a claim. It returns a [loss] if the claim is lost.
func (o *Owner) extend(ctx context.Context, c *Claim) error {
	floorKey := keys{o.Prefix}.floor()
	known, floor := c.entry.text, c.floor.String()
	var failed error
	for range tries {
		now := o.Clock()
		if c.entry.Spent.meets(now, o.hold) {
			return o.lose(c, errSpent)
		}
		if now > c.Milli()+o.hold { // if the clock is wrong, the write would use up the number
			if err := o.clockOff(ctx); err != nil {
				return err
			}
		}
		want := c.next(now+o.hold, o.Random())
		o.remember(c, want.Mark)
		ok, err := o.swap(ctx, map[string]string{c.key: known, floorKey: floor}, map[string]string{c.key: want.String()})
		if err == nil && ok {
			c.confirm(want)
			return nil
		}
		failed = err
		texts, getErr := o.get(ctx, c.key, floorKey)
		if getErr != nil {
			return both(err, getErr)
		}
		f, err := o.floorIn(texts[1])
		if err != nil {
			return err
		}
		if err := o.judge(c, texts[0], f); err != nil {
			return o.lose(c, err)
		}
		if texts[0] == want.String() {
			return nil
		}
		if err := o.mend(ctx); err != nil {
			return err
		}
		known, floor = texts[0], texts[1]
	}
	return notWritten(c.Number(), failed)
}

// A loss says why a claim is lost.
type loss struct {
	why   string
	clean bool // the node may still make ids up to the mark
}

func (l loss) Error() string { return l.why }

var (
	errPast      = loss{why: "its mark has passed, and the store may have been restored"}
	errCopy      = loss{why: "another process has its token: a copy of this process, or of its disk"}
	errSpent     = loss{why: "it has reached the time that a claim with a wrong clock used up", clean: true}
	errWithdrawn = loss{why: "its floor was withdrawn before the clock passed it", clean: true}
)

// floorIn parses the floor that the store now has. If there is no floor, or text is not one, the node
// may make ids up to its mark, as if the store did not respond.
func (o *Owner) floorIn(text string) (f Floor, err error) {
	if f, err = parseFloor(text); err != nil {
		return f, foreign(keys{o.Prefix}.floor(), text)
	}
	if f == (Floor{}) {
		o.restored("the floor is missing")
		return f, errNoFloor
	}
	return f, nil
}

var errNoFloor = errors.New("flake: the floor is missing")

// judge returns why a claim is lost, or nil if it is not. text and f are what the store now has as
// the claim's value and as the floor.
func (o *Owner) judge(c *Claim, text string, f Floor) error {
	switch {
	case c.Milli() < f.Since:
		return errPast
	case f.withdraws(c.floor) && c.after == c.floor.Mark && o.Clock() <= c.after:
		return errWithdrawn
	}
	old := f == c.floor || f.Since < o.good // the floor was not written since the last step
	c.floor = f                             // stored on the disk too, before the next mark is written
	v, err := parseValue(text)
	mine := v.Token == c.entry.Token && v.Generation == c.entry.Generation && !v.Free
	switch {
	case text != "" && err != nil:
		return foreign(c.key, text)
	case mine && v.Mark >= c.Milli() && !c.wrote(v):
		return errCopy
	case mine && v.Mark >= c.Milli():
		c.confirm(v)
		return nil
	case !mine && v.Generation >= c.entry.Generation, v.Mark > c.Milli(): // the new owner may already have made ids
		what := v.Name + " has it"
		if v.Free {
			what = "it was released"
		}
		return loss{what, v.Generation > c.entry.Generation && v.After >= c.Milli()}
	case c.Milli() < o.Clock(): // the store may have forgotten a later owner
		return errPast
	}
	o.Log.Warn("the store has forgotten a mark: writing it again",
		"number", c.Number(), "mark", show(c.Milli()), "had", text)
	if text != "" && old {
		o.restored(fmt.Sprintf("worker id %d has an older value", c.Number()))
	}
	return nil
}

// lose ends a claim and returns the reason as an error.
func (o *Owner) lose(c *Claim, why error) error {
	c.lose(why)
	if err := o.forget(); err != nil {
		o.Log.Warn("cannot erase the lost worker id from the file: after a crash the node may reclaim it",
			"number", c.Number(), "err", err)
	}
	err := fmt.Errorf("flake: worker id %d is lost: %w", c.Number(), why)
	if c.Clean() {
		o.Log.Error("a worker id is lost: its ids end at the mark; claiming another",
			"number", c.Number(), "err", err, "mark", show(c.Milli()))
	} else {
		o.Log.Error("a worker id is lost: its ids end now; claiming another", "number", c.Number(), "err", err)
	}
	return err
}

// release returns a number to the store. First it erases the number from the node's disk.
// Otherwise, if the store were later restored and had the claim's token again, the node could
// resume the claim, although other nodes may have had the number.
func (o *Owner) release(ctx context.Context, c *Claim) error {
	floorKey := keys{o.Prefix}.floor()
	want := c.entry.Value
	want.Free, want.Mark = true, min(max(c.Milli(), c.highest), max(o.Memory.Latest(), c.after))
	var failed error
	for range tries + 1 {
		texts, err := o.get(ctx, c.key, floorKey)
		switch {
		case err != nil:
			return both(failed, err)
		case texts[0] == want.String():
			return nil
		}
		f, err := o.floorIn(texts[1])
		if err != nil {
			return err
		}
		if o.judge(c, texts[0], f) != nil {
			return nil
		}
		if err := o.forget(); err != nil {
			return err
		}
		have := map[string]string{c.key: texts[0], floorKey: texts[1]}
		ok, err := o.swap(ctx, have, map[string]string{c.key: want.String()})
		if err == nil && ok {
			return nil
		}
		failed = err
	}
	return notWritten(c.Number(), failed)
}

// both joins the errors of a write and of the read after it, or returns the first if its text contains
// all lines of the second: often the store fails both for the same reasons.
func both(err, next error) error {
	if err == nil {
		return next
	}
	lines := strings.Split(err.Error(), "\n")
	for line := range strings.SplitSeq(next.Error(), "\n") {
		if !slices.Contains(lines, line) {
			return errors.Join(err, next)
		}
	}
	return err
}
