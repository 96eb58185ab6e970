package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Restored describes a restored store, and the fleet that will use it.
type Restored struct {
	Clock  func() uint64 // returns milliseconds since 1970
	Until  uint64        // when a node last reached the store before the restore; 0 means now
	Hold   time.Duration // the longest hold in the fleet; a longer one in the store overrides it
	Margin time.Duration // the most that a node's clock may be ahead; 0 or more
	Again  bool          // whether the store was restored twice within hold
	From   string        // the [Place] from which the fleet moves to this store, or empty
	Last   string        // the [Place] of a node's last number, or empty if it is not known
	Sure   bool          // whether to trust the fields above although the store contradicts them
	Nonce  uint64        // random
}

// AfterRestore writes the floor of a store that was restored from a snapshot, or to which a fleet
// moves, and returns it. Call it before nodes reach the store. It keeps a floor whose mark has not
// passed, unless r.Again is set; the floor's Nonce then differs from r.Nonce.
//
// An owner whose mark is later than r.Until plus the margin keeps its number: no other node can
// have claimed it, because at r.Until the mark had not passed on any clock. All other owners claim
// again, and their ids begin one hold after r.Until plus the margin. This assumes that owners read
// the store until it was restored. After a second restore within hold, some may not have, so the
// floor must be above the mark of the first floor: no owner can have passed that mark without
// having read the first floor.
//
// Unless r.Sure is set, AfterRestore fails if a value in the store proves that r.Until, r.Margin or
// r.Clock is wrong; if no number was ever claimed and r.From is empty; or if r.From is not a place in
// the floor or r.Last, unless both are empty.
func AfterRestore(ctx context.Context, s Store, prefix string, r Restored) (Floor, error) {
	t, err := r.check(ctx, s, prefix)
	if err == nil {
		err = r.contradicted(t, prefix)
	}
	if err != nil {
		return Floor{}, err
	}
	cluster, err := clusterOf(ctx, s)
	if err != nil && noticed(s) { // the floor is the answer to it
		cluster, err = clusterOf(ctx, s)
	}
	if err != nil {
		return Floor{}, err
	}
	here := Place(cluster, prefix)
	f := t.floor
	switch {
	case r.Again || !f.in(here): // the floor is that of an earlier restore
		f = r.floor(t.floor.Mark)
	case f.Mark < r.Clock():
		f = r.floor(0)
	}
	f.Places = t.floor.Places
	f.add(strings.Fields(r.From)...)
	f.add(here)
	return f, t.write(ctx, s, f)
}

// noticed reports whether the store has just noticed that it was restored.
func noticed(s Store) bool {
	if s, ok := s.(Restorable); ok {
		_, ok = s.Restored()
		return ok
	}
	return false
}

// contradicted returns an error if the table proves that r is wrong.
func (r Restored) contradicted(t table, prefix string) error {
	places := strings.Fields(t.floor.Places + " " + r.Last)
	most := r.Clock() + uint64((r.Margin+r.Hold)/time.Millisecond) // the latest mark of a floor that is right
	switch {
	case r.Sure:
		return nil
	case t.empty() && r.From == "":
		return fmt.Errorf("flake: no worker id was ever claimed under the prefix %q: is it that of the nodes?", prefix)
	case r.From != "" && len(places) > 0 && !slices.Contains(places, r.From):
		return fmt.Errorf("flake: neither the store nor this machine's file knows the place %q, but they know %q: "+
			"is it the one that a node shows when it refuses to start?", r.From, places)
	case r.Margin > 3*r.Hold:
		return fmt.Errorf("flake: the margin is %v, more than three times hold (%v), and new claims would wait as long: "+
			"how far may a node's clock be ahead?", r.Margin, r.Hold)
	case r.Again && t.floor.Mark > most:
		return fmt.Errorf("flake: the floor is at %s, later than the clock, the margin and hold allow: "+
			"withdraw it instead of raising it", show(t.floor.Mark))
	}
	for _, e := range t.entries {
		written := e.Mark // when the node wrote the value, or earlier
		if !e.Free {
			written -= min(written, e.Hold)
		}
		if r.Until > 0 && e.byNode() && written > r.Until+uint64(r.Margin/time.Millisecond) {
			return fmt.Errorf("flake: a node reached the store later than %s, the time given: worker id %d has the mark %s, "+
				"which %s wrote at %s or later; is the time right, and in UTC?",
				show(r.Until), e.Number, show(e.Mark), e.Name, show(written))
		}
	}
	return nil
}

// Withdraw replaces a floor with a lower one, which it returns. It is for a floor that was written
// by mistake, or with a wrong clock or margin. Owners that wait for the old floor claim again, and
// their ids begin one hold after r.Until plus the margin. It keeps a floor that is not later.
func Withdraw(ctx context.Context, s Store, prefix string, r Restored) (Floor, error) {
	t, err := r.check(ctx, s, prefix)
	switch f := r.floor(0); {
	case err != nil:
		return Floor{}, err
	case t.floor.Mark == 0:
		return Floor{}, fmt.Errorf("flake: there is no floor to withdraw under the prefix %q", prefix)
	case f.Mark >= t.floor.Mark:
		return t.floor, nil
	default:
		f.Nonce, f.Places = ^t.floor.Nonce, t.floor.Places
		return f, t.write(ctx, s, f)
	}
}

// restored records a sign that the store was restored. Step then calls mend.
func (o *Owner) restored(sign string) {
	o.sign = sign
	o.Log.Error("the store of worker ids was restored from a backup, or its keys were deleted: "+
		"new claims get only later times, so that no id repeats", "why", sign)
}

// mend writes the floor if the store was restored. If another node has written it since, mend only adds
// the former places that are missing: a node that has just started knows none.
func (o *Owner) mend(ctx context.Context) error {
	if s, ok := o.Store.(Restorable); ok {
		if sign, ok := s.Restored(); ok {
			o.restored(sign)
		}
	}
	if o.sign == "" {
		return nil
	}
	if err := o.clockOff(ctx); err != nil {
		return err
	}
	if err := o.locate(ctx); err != nil {
		return err
	}
	r := Restored{Clock: o.Clock, Hold: o.Hold, Margin: DefaultMargin(o.Hold), Sure: true, Nonce: o.Random()}
	asking, cancel := o.asking(ctx)
	defer cancel()
	t, err := r.check(asking, o.Store, o.Prefix)
	if err != nil {
		return err
	}
	var known Floor
	if c, _ := o.Claim(); c != nil {
		known = c.floor
	}
	f := t.floor
	if !f.in(o.place()) || f == known || f.Since < o.good { // it was not written since the restore
		f = r.floor(max(f.Mark, known.Mark))
	}
	f.Places = known.Places
	f.add(strings.Fields(t.floor.Places)...)
	f.add(o.place())
	if f != t.floor {
		if err := t.write(asking, o.Store, f); err != nil {
			return err
		}
	}
	o.sign = ""
	return nil
}

// DefaultMargin returns the most by which a node's clock is assumed to be ahead.
func DefaultMargin(hold time.Duration) time.Duration { return min(10*time.Second, hold/3) }

// check returns the table, or an error if r.Clock is wrong. It raises r.Hold to the longest hold
// in the store.
func (r *Restored) check(ctx context.Context, s Store, prefix string) (t table, err error) {
	if t, err = read(ctx, s, keys{prefix}); err != nil {
		return t, err
	}
	if r.Margin < 0 {
		return t, fmt.Errorf("flake: the margin is %v, but must be 0 or more", r.Margin)
	}
	highest := uint64(0)
	for _, e := range t.entries {
		r.Hold = max(r.Hold, time.Duration(e.Hold)*time.Millisecond)
		if e.byNode() {
			highest = max(highest, e.Mark)
		}
	}
	if r.Sure {
		return t, nil
	}
	if s, ok := s.(Dated); ok {
		for _, off := range s.Clocks(ctx, r.Clock) {
			if off.Abs() > r.Margin {
				return t, fmt.Errorf("flake: this clock is %v ahead of the clock of one of the store's machines, "+
					"more than the margin of %v: correct it", off, r.Margin)
			}
		}
	}
	if now := r.Clock(); now+uint64((r.Hold+r.Margin)/time.Millisecond) < highest {
		return t, fmt.Errorf("flake: this clock says %s, and a mark is at %s, later than hold (%v) and the margin allow: "+
			"correct the clock", show(now), show(highest), r.Hold)
	}
	return t, nil
}

// byNode reports whether a node claimed or returned the number, rather than [Release] or, if its key was
// deleted, another node.
func (v Value) byNode() bool { return !v.Free || v.After < v.Mark }

// floor returns the floor to write. Its Since is above last, the mark of an earlier floor, or 0.
func (r Restored) floor(last uint64) Floor {
	until := r.Clock()
	if r.Until > 0 {
		until = min(until, r.Until)
	}
	since := max(until+uint64(r.Margin/time.Millisecond), last+1)
	return Floor{Since: since, Mark: since + uint64(r.Hold/time.Millisecond), Nonce: max(r.Nonce, 1)}
}

// write replaces the floor that was read.
func (t table) write(ctx context.Context, s Store, f Floor) error {
	key := t.keys.floor()
	var failed error
	for range tries {
		ok, err := s.Swap(ctx, map[string]string{key: t.floor.String()}, map[string]string{key: f.String()})
		if err == nil && ok {
			return nil
		}
		failed = err
		texts, err := s.Get(ctx, key)
		switch {
		case err != nil:
			return both(failed, err)
		case texts[0] == f.String():
			return nil
		case texts[0] != t.floor.String():
			return errors.New("flake: another process has just written the floor: check it, and try again")
		}
	}
	return fmt.Errorf("flake: the floor was not written in %d attempts: %w", tries, failed)
}

// Release takes a number from its owner and returns the number's new value. The owner then claims
// another number. The mark stays; other nodes may claim the number once the mark has passed.
//
// If the claim was made by a clock far ahead of now, other nodes may claim the number
// immediately. The time that the claim may have used counts as spent, and no other claim may
// use it.
func Release(ctx context.Context, s Store, prefix string, number, now uint64) (Value, error) {
	k := keys{prefix}
	for range tries {
		texts, err := s.Get(ctx, k.number(number), k.used(number))
		if err != nil {
			return Value{}, err
		}
		v, err := parseValue(texts[0])
		switch {
		case texts[0] == "" && texts[1] != "":
			return Value{}, fmt.Errorf("flake: the key of worker id %d was deleted: try again when its owner, "+
				"or the next node that claims a number, has written it", number)
		case texts[0] == "":
			return Value{}, fmt.Errorf("flake: worker id %d was never claimed", number)
		case err != nil:
			return Value{}, foreign(k.number(number), texts[0])
		case v.ahead(now):
			v.Spent, v.Mark = Span{v.After, max(v.Spent.Mark, v.Mark)}, v.Base
		case v.Free:
			return v, nil
		}
		v.Generation, v.Token, v.Free, v.After, v.Base = v.Generation+1, random(), true, max(v.Mark, v.Spent.Mark), 0
		if ok, err := s.Swap(ctx, map[string]string{k.number(number): texts[0]},
			map[string]string{k.number(number): v.String()}); ok || err != nil {
			return v, err
		}
	}
	return Value{}, fmt.Errorf("flake: worker id %d was not released in %d attempts: other nodes are writing it",
		number, tries)
}

// ahead reports whether the claim began so far in the future that other nodes can claim the time
// before it. It returns false if the number was released, because then After is Mark.
func (v Value) ahead(now uint64) bool { return v.After < v.Mark && now+v.Hold <= v.After }
