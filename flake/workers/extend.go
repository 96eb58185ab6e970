package workers

import (
	"context"
	"errors"
	"fmt"
)

// extend moves the mark of a claim.
func (o *Owner) extend(ctx context.Context, c *Claim) error {
	if o.Slow > 0 && c.Milli() < o.Clock() { // others may have had it, and be forgotten
		return o.lose(c, errPast)
	}
	floorKey := keys{o.Prefix}.floor()
	known, floor := c.entry.text, c.floor.String()
	for range tries {
		want := c.entry.Value
		want.Mark = max(c.Milli(), o.Clock()+o.hold)
		ok, err := o.swap(ctx, map[string]string{c.key: known, floorKey: floor}, c.key, want.String())
		if err == nil && ok {
			c.confirm(want)
			return nil
		}
		texts, getErr := o.get(ctx, c.key, floorKey)
		if getErr != nil {
			return errors.Join(err, getErr)
		}
		if err := o.judge(c, texts[0], texts[1]); err != nil {
			return o.lose(c, err)
		}
		if texts[0] == want.String() && texts[1] == floor {
			return nil
		}
		known, floor = texts[0], texts[1]
	}
	return fmt.Errorf("flake: the mark of worker id %d was not written in %d attempts", c.Number(), tries)
}

// judge returns why a claim is lost, by what the store has now, or nil.
func (o *Owner) judge(c *Claim, text, floored string) error {
	if floored != c.floor.String() {
		f, err := parseFloor(floored)
		if err != nil {
			return foreign(keys{o.Prefix}.floor(), floored)
		}
		if c.Milli() < f.Since {
			return errPast
		}
		c.floor = f
		o.remember(c)
	}
	v, err := parseValue(text)
	mine := v.Token == c.entry.Token && v.Generation == c.entry.Generation && !v.Free
	switch {
	case text != "" && err != nil:
		return foreign(c.key, text)
	case mine && v.Mark >= c.Milli():
		c.confirm(v)
		return nil
	case !mine && v.Generation >= c.entry.Generation, v.Mark > c.Milli(): // perhaps it has ids already
		return fmt.Errorf("%s has it", v.Name)
	case c.Milli() < o.Clock(): // others may have had it, and be forgotten
		return errPast
	}
	o.Log.Warn("the store has forgotten a mark, which is written again: was it restored? Then see after-restore",
		"number", c.Number(), "mark", show(c.Milli()), "had", text)
	return nil
}

var errPast = errors.New("the mark is past, and the store may have been restored")

// lose ends a claim.
func (o *Owner) lose(c *Claim, why error) error {
	close(c.lost)
	err := fmt.Errorf("flake: worker id %d is lost: %w", c.Number(), why)
	o.Log.Error("a worker id is lost: its ids end at the mark, and another is claimed", "number", c.Number(), "err", err, "mark", show(c.Milli()))
	return err
}

// release gives a number back. Last is the latest time of its ids; 0: unknown.
func (o *Owner) release(ctx context.Context, c *Claim, last uint64) error {
	floorKey := keys{o.Prefix}.floor()
	known, floor := c.entry.text, c.floor.String()
	for range tries {
		want := c.entry.Value
		want.Free = true
		if last > 0 {
			want.Mark = min(c.Milli(), max(last, c.after))
		}
		ok, err := o.swap(ctx, map[string]string{c.key: known, floorKey: floor}, c.key, want.String())
		if err == nil && ok {
			return nil
		}
		texts, getErr := o.get(ctx, c.key, floorKey)
		switch {
		case getErr != nil:
			return errors.Join(err, getErr)
		case texts[0] == want.String():
			return nil
		}
		if err := o.judge(c, texts[0], texts[1]); err != nil {
			return nil
		}
		known, floor = texts[0], texts[1]
	}
	return fmt.Errorf("flake: worker id %d was not given back in %d attempts", c.Number(), tries)
}
