package workers

import (
	"context"
	"errors"
	"fmt"
)

// extend moves the mark of a claim.
func (o *Owner) extend(ctx context.Context, c *Claim) error {
	floorKey := keys{o.Prefix}.floor()
	known, floor := c.entry.text, c.floor.String()
	var failed error
	for range tries {
		now := o.Clock()
		if c.entry.Spent.meets(now, o.hold) {
			return o.lose(c, errSpent)
		}
		if now > c.Milli()+o.hold { // it may be the clock that has jumped, which would spend the number
			if err := o.clockOff(ctx); err != nil {
				return err
			}
		}
		want := c.next(now+o.hold, o.Random())
		o.remember(c, want.Mark)
		ok, err := o.swap(ctx, map[string]string{c.key: known, floorKey: floor}, c.key, want.String())
		if err == nil && ok {
			c.confirm(want)
			return nil
		}
		failed = err
		texts, getErr := o.get(ctx, c.key, floorKey)
		if getErr != nil {
			return errors.Join(err, getErr)
		}
		if err := o.judge(c, texts[0], texts[1]); err != nil {
			return o.lose(c, err)
		}
		if texts[0] == want.String() {
			return nil
		}
		known, floor = texts[0], texts[1]
	}
	return notWritten(c.Number(), failed)
}

// A loss is why a claim is lost.
type loss struct {
	why   string
	clean bool // the ids up to its mark are still its own
}

func (l loss) Error() string { return l.why }

var (
	errPast      = loss{why: "the mark is past, and the store may have been restored"}
	errCopy      = loss{why: "another process has its token: a copy of this one, with its memory or its disk"}
	errSpent     = loss{why: "it comes to the time that a claim with a wrong clock has spent", clean: true}
	errWithdrawn = loss{why: "the floor that it was to begin above has been withdrawn", clean: true}
)

// judge returns why a claim is lost, by what the store has now, or nil.
func (o *Owner) judge(c *Claim, text, floored string) error {
	f, err := parseFloor(floored)
	switch {
	case err != nil:
		return foreign(keys{o.Prefix}.floor(), floored)
	case c.Milli() < f.Since:
		return errPast
	case f.withdraws(c.floor) && c.after == c.floor.Mark && o.Clock() <= c.after:
		return errWithdrawn
	}
	c.floor = f // and so on the disk, before the next mark is written
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
	case !mine && v.Generation >= c.entry.Generation, v.Mark > c.Milli(): // perhaps it has ids already
		what := v.Name + " has it"
		if v.Free {
			what = "it was released"
		}
		return loss{what, v.Generation > c.entry.Generation && v.After >= c.Milli()}
	case c.Milli() < o.Clock(): // others may have had it, and be forgotten
		return errPast
	}
	o.Log.Warn("the store has forgotten a mark, which is written again: was it restored? Then see after-restore",
		"number", c.Number(), "mark", show(c.Milli()), "had", text)
	return nil
}

// lose ends a claim.
func (o *Owner) lose(c *Claim, why error) error {
	var l loss
	c.clean = errors.As(why, &l) && l.clean
	close(c.lost)
	if err := o.forget(); err != nil {
		o.Log.Warn("the worker id that is lost cannot be forgotten: a start after a crash may take it back", "number", c.Number(), "err", err)
	}
	err := fmt.Errorf("flake: worker id %d is lost: %w", c.Number(), why)
	if c.clean {
		o.Log.Error("a worker id is lost: its ids end at the mark, and another is claimed", "number", c.Number(), "err", err, "mark", show(c.Milli()))
	} else {
		o.Log.Error("a worker id is lost: its ids end now, and another is claimed", "number", c.Number(), "err", err)
	}
	return err
}

// release gives a number back. The node forgets it first: its token may be in a store that
// is restored, when others have had the number since.
func (o *Owner) release(ctx context.Context, c *Claim) error {
	floorKey := keys{o.Prefix}.floor()
	want := c.entry.Value
	want.Free, want.Mark = true, max(c.Milli(), c.highest)
	if o.Memory != nil {
		want.Mark = min(c.Milli(), max(o.Memory.Latest(), c.after))
	}
	var failed error
	for range tries + 1 {
		texts, err := o.get(ctx, c.key, floorKey)
		switch {
		case err != nil:
			return errors.Join(failed, err)
		case texts[0] == want.String():
			return nil
		}
		if o.judge(c, texts[0], texts[1]) != nil {
			return nil
		}
		if err := o.forget(); err != nil {
			return err
		}
		ok, err := o.swap(ctx, map[string]string{c.key: texts[0], floorKey: texts[1]}, c.key, want.String())
		if err == nil && ok {
			return nil
		}
		failed = err
	}
	return notWritten(c.Number(), failed)
}
