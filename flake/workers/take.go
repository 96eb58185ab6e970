package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/internal/escape"
)

const (
	// tries is how often a step writes before it leaves that to the next step.
	tries = 4

	// idle is for how many holds a number's mark has to be past until it is as good as one
	// that was never claimed, so that the table does not grow with every node that goes.
	idle = 10

	// leastOff is by how much a clock may differ from those of the store's machines, or a
	// third of hold.
	leastOff = 10 * time.Second
)

var errContended = errors.New("flake: others were faster to take a worker id")

// take claims a number: the one it had if that is free, else one that is long idle or was
// never claimed, else the one that has been idle longest.
func (o *Owner) take(ctx context.Context) error {
	t, err := o.read(ctx)
	if err != nil {
		return err
	}
	t.pass(o.Clock(), o.hold)
	if err := o.elsewhere(ctx); err != nil {
		return err
	}
	if err := o.clockOff(ctx); err != nil {
		return err
	}
	candidates := o.candidates(t)
	for _, e := range candidates[:min(len(candidates), tries)] {
		won, err := o.try(ctx, t, e)
		if won && len(t.entries) == 0 {
			o.nearby(ctx)
		}
		if won || err != nil {
			return err
		}
	}
	if len(candidates) > 0 {
		return errContended
	}
	return t.noneFree(o.First, o.Last)
}

// A ClockError is returned by a claim if the clock is too far off.
type ClockError struct{ error }

// clockOff returns a [ClockError] if most of the store's machines have it that the clock is wrong.
// This keeps numbers in use, and nothing safe: for that clocks do not count.
func (o *Owner) clockOff(ctx context.Context) error {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	s, ok := o.Store.(Dated)
	if !ok {
		return nil
	}
	offsets := s.Clocks(ctx, o.Clock)
	slices.Sort(offsets)
	if len(offsets) == 0 {
		return nil
	}
	bound := max(leastOff, o.Hold/3)
	if low, high := offsets[(len(offsets)-1)/2], offsets[len(offsets)/2]; low > bound || high < -bound {
		return ClockError{fmt.Errorf("flake: the clock is off by %v, as most of the store's machines have it, and %v is allowed: "+
			"it would take numbers that are in use, or spend its own; set it right", low, bound)}
	}
	return nil
}

// candidates are the numbers that may be claimed, the best first.
func (o *Owner) candidates(t table) (all []Entry) {
	now := t.now
	var late, recent []Entry
	for _, e := range t.sorted(byMark) {
		switch {
		case e.Number < o.First || e.Number > o.Last:
		case o.resumes(t, e), o.wrote(t, e):
			return []Entry{e}
		case e.Mark >= now:
		case e.Name == o.Name:
			all = append(all, e)
		case e.Mark+idle*o.hold < now:
			late = append(late, e)
		default:
			recent = append(recent, e)
		}
	}
	if len(late) > 0 { // not all nodes want the same
		first := o.Random() % uint64(len(late))
		all = append(append(all, late[first:]...), late[:first]...)
	}
	return append(append(all, o.unused(t)...), recent...)
}

func byMark(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Mark, b.Mark), cmp.Compare(a.Number, b.Number))
}

// unused returns some numbers that were never claimed. They begin at a random one, as
// else all nodes of a new fleet would want the same.
func (o *Owner) unused(t table) (some []Entry) {
	count := o.Last - o.First + 1
	first := o.Random() % count
	for i := range min(count, uint64(len(t.entries)+tries)) {
		n := o.First + (first+i)%count
		if _, used := t.entries[n]; !used {
			some = append(some, Entry{Number: n})
		}
	}
	return some
}

// wrote reports whether a claim was written though the answer was lost. It is claimed anew, as
// a copy of this process may know it too.
func (o *Owner) wrote(t table, e Entry) bool {
	p := o.pending
	return p != nil && p.entry.text == e.text && p.entry.Spent == e.Spent && p.floor == t.floor
}

// nearby warns of numbers under a prefix above or below: two fleets may have both, but a node with
// a prefix of its own makes the ids of its fleet again.
func (o *Owner) nearby(ctx context.Context) {
	ctx, cancel := o.asking(ctx)
	defer cancel()
	lists := []string{o.Prefix + "/"}
	for i, r := range o.Prefix {
		if r == '/' {
			lists = append(lists, keys{o.Prefix[:i]}.numbers())
		}
	}
	for _, list := range lists {
		all, _ := o.Store.List(ctx, list) // without an answer, or the right to read it, there is no warning
		for key := range all {
			other := keys{key[:max(strings.LastIndex(key, "/n/"), 0)]}
			if _, err := other.parse(key); err == nil && other.prefix != o.Prefix {
				o.Log.Warn("the first worker id of this prefix, and another prefix has some: all nodes of a fleet need the same",
					"prefix", o.Prefix, "other", escape.Text(other.prefix))
				return
			}
		}
	}
}

// try claims a number, unless another node was faster.
func (o *Owner) try(ctx context.Context, t table, e Entry) (won bool, err error) {
	c := &Claim{owner: o, key: t.keys.number(e.Number), floor: t.floor, lost: make(chan struct{})}
	// Ids that begin near the clock leave the time before to others, if the clock is wrong.
	base := max(e.Mark, 1)
	c.after = max(e.Mark, t.floor.Mark, t.now-min(t.now, o.hold))
	switch {
	case o.resumes(t, e):
		c.resumed, c.after, base = true, o.Memory.Number().After, e.Base
	case o.wrote(t, e):
		c.after, base = o.pending.after, e.Base
	}
	want := Value{
		Mark: max(e.Mark, t.now+o.hold), Generation: e.Generation + 1, Token: o.Random(), Name: o.Name,
		After: c.after, Hold: o.hold, Nonce: o.Random(), Base: base, Spent: e.Spent,
	}
	c.entry = Entry{e.Number, want, want.String()}
	have := map[string]string{c.key: e.text, t.keys.floor(): t.floor.String()}
	var failed error
	for range tries {
		ok, err := o.swap(ctx, have, c.key, c.entry.text)
		if err == nil && ok {
			return true, o.have(c)
		}
		o.pending, failed = c, err
		texts, getErr := o.get(ctx, c.key, t.keys.floor())
		switch {
		case getErr != nil:
			return false, errors.Join(err, getErr)
		case texts[1] != t.floor.String(): // begin anew, above it
			return false, errContended
		case texts[0] == c.entry.text:
			return true, o.have(c)
		case texts[0] != e.text:
			return false, nil
		}
	}
	return false, notWritten(e.Number, failed)
}

// notWritten is what the last of several attempts failed with, if that is known.
func notWritten(number uint64, err error) error {
	if err == nil {
		err = errContended
	}
	return fmt.Errorf("flake: the value of worker id %d was not written in %d attempts: %w", number, tries, err)
}

// have makes a claim the owner's.
func (o *Owner) have(c *Claim) error {
	c.confirm(c.entry.Value)
	o.pending = nil
	o.remember(c, c.Milli())
	o.Log.Info("claimed a worker id", "number", c.Number(), "resumed", c.resumed, "prefix", o.Prefix, "mark", show(c.Milli()))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claim = c
	close(o.changed)
	o.changed = make(chan struct{})
	return nil
}
