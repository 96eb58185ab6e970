package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// tries is how often a step writes before it leaves that to the next step.
const tries = 4

var errContended = errors.New("flake: others were faster to take a worker id")

// take claims a number: the last one if it is free, else the one that has been idle
// longest. A number that was never claimed counts as the longest idle.
func (o *Owner) take(ctx context.Context) error {
	t, err := o.read(ctx)
	if err != nil {
		return err
	}
	if p := o.pending; p != nil && t.entries[p.Number()].text == p.entry.text && t.floor == p.floor {
		return o.have(p) // it was written, though the answer was lost
	}
	candidates := o.candidates(t)
	for _, e := range candidates[:min(len(candidates), tries)] {
		if won, err := o.try(ctx, t, e); won || err != nil {
			return err
		}
	}
	if len(candidates) > 0 {
		return errContended
	}
	return t.noneFree(o.First, o.Last)
}

// candidates are the numbers that may be claimed, the best first.
func (o *Owner) candidates(t table) (all []Entry) {
	now := o.Clock()
	var idle []Entry
	for _, e := range t.sorted(byMark) {
		switch {
		case e.Number < o.First || e.Number > o.Last:
		case o.resumes(t, e):
			return []Entry{e}
		case e.Mark >= now:
		case e.Name == o.Name:
			all = append(all, e)
		default:
			idle = append(idle, e)
		}
	}
	return append(append(all, o.unused(t)...), idle...)
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
		if _, used := t.entries[n]; !used && len(some) < tries {
			some = append(some, Entry{Number: n})
		}
	}
	return some
}

// resumes reports whether this node had the number before its restart, and nobody else
// since. A number whose mark is past is claimed as any other.
func (o *Owner) resumes(t table, e Entry) bool {
	if o.Memory == nil || e.Mark < o.Clock() {
		return false
	}
	k := o.Memory.kept
	return k.generation > 0 && k.number == e.Number && k.generation == e.Generation && k.token == e.Token && k.floor == t.floor.Nonce
}

// try claims a number, unless another node was faster.
func (o *Owner) try(ctx context.Context, t table, e Entry) (won bool, err error) {
	now := o.Clock()
	want := Value{Mark: max(e.Mark, now+o.hold), Generation: e.Generation + 1, Token: o.Random(), Name: o.Name}
	c := &Claim{
		owner: o, key: t.keys.number(e.Number), entry: Entry{e.Number, want, want.String()},
		floor: t.floor, after: max(e.Mark, t.floor.Mark), lost: make(chan struct{}),
	}
	switch {
	case o.resumes(t, e):
		c.resumed, c.after, c.other = true, o.Memory.kept.after, c.after
	case o.Slow > 0:
		c.after = max(c.after, now+uint64(o.Slow/time.Millisecond))
	}
	have := map[string]string{c.key: e.text, t.keys.floor(): t.floor.String()}
	for range tries {
		ok, err := o.swap(ctx, have, c.key, c.entry.text)
		if err == nil && ok {
			return true, o.have(c)
		}
		o.pending = c
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
	return false, fmt.Errorf("flake: worker id %d was not written in %d attempts", e.Number, tries)
}

// have makes a claim the owner's.
func (o *Owner) have(c *Claim) error {
	c.confirm(c.entry.Value)
	o.pending = nil
	o.remember(c)
	o.Log.Info("claimed a worker id", "number", c.Number(), "resumed", c.resumed, "prefix", o.Prefix, "mark", show(c.Milli()))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claim = c
	close(o.changed)
	o.changed = make(chan struct{})
	return nil
}

// remember keeps a claim on the node's disk. If that fails, the node claims another
// number after a crash.
func (o *Owner) remember(c *Claim) {
	if o.Memory == nil {
		return
	}
	if err := o.Memory.save(kept{c.Number(), c.entry.Generation, c.entry.Token, c.after, c.floor.Nonce}); err != nil {
		o.Log.Warn("the worker id cannot be kept: a start after a crash claims another", "err", err)
	}
}
