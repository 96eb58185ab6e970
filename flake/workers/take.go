package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/internal/escape"
)

const (
	// tries is how many times one step attempts a write.
	tries = 4

	// idle is the number of holds that must pass after a number's mark before the number is
	// preferred to numbers that were never claimed. Without this preference, the table would
	// grow with every node that is replaced.
	idle = 10

	// A clock may differ from the clocks of the store's machines by minOffset, or by a third of
	// hold if that is more.
	minOffset = 10 * time.Second
)

var errContended = errors.New("flake: other nodes claimed the worker ids first")

// take claims a number: the node's former number if it is free, otherwise one that has been
// idle for a long time or was never claimed, otherwise the one that has been idle longest.
func (o *Owner) take(ctx context.Context) error {
	t, err := o.survey(ctx)
	if err != nil {
		return err
	}
	if err := o.clockOff(ctx); err != nil {
		return err
	}
	t.pass(o.Clock(), o.hold)
	if err := o.replace(ctx, &t); err != nil {
		return err
	}
	candidates := o.candidates(t)
	for _, e := range candidates[:min(len(candidates), tries)] {
		won, err := o.try(ctx, t, e)
		if won && t.empty() {
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

// survey reads the table. If its floor does not name this place, the numbers were restored or copied
// to it, or the floor was deleted; then survey first writes the floor.
func (o *Owner) survey(ctx context.Context) (t table, err error) {
	for attempt := range 3 {
		if t, err = o.read(ctx); err != nil {
			return t, err
		}
		if err := o.locate(ctx); err != nil {
			return t, err
		}
		if err := o.elsewhere(t); err != nil {
			return t, err
		}
		if t.empty() || t.floor.in(o.place()) {
			return t, nil
		}
		if attempt == 0 { // another node may have made the first claim after the floor was read
			continue
		}
		o.restored("the floor does not name " + o.place())
		if err := o.mend(ctx); err != nil {
			return t, err
		}
	}
	return t, errContended
}

// replace writes values for numbers whose keys were deleted from the store. Such a number may still
// have an owner, so it is free only once the owner's mark must have passed, on any clock with which
// numbers can be claimed.
func (o *Owner) replace(ctx context.Context, t *table) error {
	written := 0
	for _, n := range slices.Sorted(maps.Keys(t.used)) {
		if _, found := t.entries[n]; found || n < o.First || n > o.Last {
			continue
		}
		mark := t.now + t.used[n] + 2*uint64(o.allowed()/time.Millisecond)
		v := Value{Mark: mark, Generation: 1, Token: o.Random(), Free: true, Name: "deleted", After: mark, Nonce: o.Random()}
		t.entries[n] = Entry{n, v, v.String()}
		if written++; written > tries {
			continue // others are written later, but are not free either
		}
		key := t.keys.number(n)
		have := map[string]string{key: "", t.keys.floor(): t.floor.String()}
		ok, err := o.swap(ctx, have, map[string]string{key: v.String()})
		switch {
		case err != nil:
			return err
		case ok:
			o.Log.Error("the key of a worker id was deleted from the store: the number can be claimed later, "+
				"when the mark of its last owner must have passed; never delete keys", "number", n, "from", show(mark))
		}
	}
	return nil
}

// allowed is how far the clock may differ from those of the store's machines.
func (o *Owner) allowed() time.Duration { return max(minOffset, o.Hold/3) }

// A ClockError is the error of a claim while the clock is too far off.
type ClockError struct{ error }

// clockOff returns a [ClockError] if the clock is too far from those of most of the store's
// machines. Safety does not depend on this check: it keeps a wrong clock from using up numbers.
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
	bound := o.allowed()
	if low, high := offsets[(len(offsets)-1)/2], offsets[len(offsets)/2]; low > bound || high < -bound {
		return ClockError{fmt.Errorf("flake: the clock is off by %v, compared with most of the store's machines, "+
			"and %v is allowed: this node would take numbers that are in use, or use up its own; correct the clock",
			low, bound)}
	}
	return nil
}

// candidates returns the entries of numbers that this node may claim, best first.
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
	if len(late) > 0 { // start at a random entry, so that nodes do not compete for the same one
		first := o.Random() % uint64(len(late))
		all = append(append(all, late[first:]...), late[:first]...)
	}
	return append(append(all, o.unused(t)...), recent...)
}

func byMark(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Mark, b.Mark), cmp.Compare(a.Number, b.Number))
}

// unused returns some numbers that were never claimed, starting at a random one, so that nodes
// of a new fleet do not compete for the same number.
func (o *Owner) unused(t table) (some []Entry) {
	count := o.Last - o.First + 1
	first := o.Random() % count
	for i := range min(count, uint64(len(t.entries)+tries)) {
		n := o.First + (first+i)%count
		if _, found := t.entries[n]; !found {
			some = append(some, Entry{Number: n})
		}
	}
	return some
}

// wrote reports whether the pending claim was written to e, although its answer was lost. Even then
// the number must be claimed again, because a copy of this process may have the same pending claim.
func (o *Owner) wrote(t table, e Entry) bool {
	p := o.pending
	return p != nil && p.entry.text == e.text && p.entry.Spent == e.Spent && p.floor == t.floor
}

// nearby warns if there are numbers under a longer or shorter prefix. Two fleets may have such
// prefixes. But a node whose prefix differs from that of the rest of its fleet repeats the fleet's
// ids.
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
		all, _ := o.Store.List(ctx, list) // after an error, do not warn
		for key := range all {
			other := keys{key[:max(strings.LastIndex(key, "/n/"), 0)]}
			if _, err := other.parse(key, keys.number); err == nil && other.prefix != o.Prefix {
				o.Log.Warn("claimed the first worker id of this prefix, but another prefix has some too: "+
					"all nodes of a fleet need the same prefix",
					"prefix", o.Prefix, "other", escape.Text(other.prefix))
				return
			}
		}
	}
}

// try claims the number of an entry. It returns false if another node has changed the entry.
func (o *Owner) try(ctx context.Context, t table, e Entry) (won bool, err error) {
	c := &Claim{owner: o, key: t.keys.number(e.Number), floor: t.floor}
	c.floor.add(o.place())
	c.lost, c.lose = context.WithCancelCause(context.Background())
	// Ids begin near the clock's time. If the clock is wrong, other nodes can still use the
	// time before these ids.
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
	write := map[string]string{
		c.key: c.entry.text, t.keys.used(e.Number): usedText(o.hold), t.keys.floor(): c.floor.String(),
	}
	var failed error
	for range tries {
		ok, err := o.swap(ctx, have, write)
		if err == nil && ok {
			o.have(c)
			return true, nil
		}
		o.pending, failed = c, err
		texts, getErr := o.get(ctx, c.key, t.keys.floor())
		switch {
		case getErr != nil:
			return false, both(err, getErr)
		case texts[1] != have[t.keys.floor()] && texts[1] != write[t.keys.floor()]: // claim again, above the new floor
			return false, errContended
		case texts[0] == c.entry.text:
			o.have(c)
			return true, nil
		case texts[0] != e.text:
			return false, nil
		}
		have[t.keys.floor()] = texts[1] // another node's first claim may have written it
	}
	return false, notWritten(e.Number, failed)
}

// notWritten returns the error after all attempts have failed; err is the last attempt's error.
func notWritten(number uint64, err error) error {
	if err == nil {
		err = errContended
	}
	return fmt.Errorf("flake: the value of worker id %d was not written in %d attempts: %w", number, tries, err)
}

// have makes c the owner's claim.
func (o *Owner) have(c *Claim) {
	c.confirm(c.entry.Value)
	o.pending = nil
	o.remember(c, c.Milli())
	o.Log.Info("claimed a worker id",
		"number", c.Number(), "resumed", c.resumed, "prefix", o.Prefix, "mark", show(c.Milli()))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claim = c
	close(o.changed)
	o.changed = make(chan struct{})
}
