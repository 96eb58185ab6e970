package workers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Restored is what is known of a restored store, and of the fleet that goes on with it.
type Restored struct {
	Clock  func() uint64 // ms since 1970
	Until  uint64        // when a node last reached the store as it was before; 0: now
	Hold   time.Duration // the longest of the fleet, or what the store has, if that is longer
	Margin time.Duration // how far at most the clocks of nodes are ahead
	Again  bool          // it was restored once more within hold
	Sure   bool          // the clock is right, whatever others say
	Nonce  uint64        // random
}

// AfterRestore writes the floor of a store that was restored from a snapshot. Call it
// before nodes reach the store. A floor that is not past is left as it is, unless r.Again.
//
// An owner whose mark is ahead of r.Until and the margin goes on: nobody can have claimed its
// number, as its mark was not past for anybody. All others claim anew, and their ids
// begin hold later. This holds for owners that knew the store as it was until then. So
// after a second restore within hold, the floor must reach beyond the mark of the first,
// which no owner can have passed without having seen that floor.
func AfterRestore(ctx context.Context, s Store, prefix string, r Restored) (Floor, error) {
	t, err := r.check(ctx, s, prefix)
	switch {
	case err != nil:
		return Floor{}, err
	case t.floor.Mark >= r.Clock() && !r.Again:
		return t.floor, nil
	}
	f := r.floor(t)
	if r.Again && f.Since <= t.floor.Mark {
		f = r.above(t.floor.Mark + 1)
	}
	return f, t.write(ctx, s, f)
}

// Withdraw takes back a floor that was written though nothing had been restored, or with a
// wrong clock or margin: owners that wait for it claim anew, with ids that begin hold later.
func Withdraw(ctx context.Context, s Store, prefix string, r Restored) (Floor, error) {
	t, err := r.check(ctx, s, prefix)
	if err != nil {
		return Floor{}, err
	}
	f := r.floor(t)
	if f.Mark >= t.floor.Mark {
		return t.floor, nil
	}
	f.Nonce = ^t.floor.Nonce
	return f, t.write(ctx, s, f)
}

// mend writes the floor of a store that shows that it was restored, unless another did.
func (o *Owner) mend(ctx context.Context) error {
	if s, ok := o.Store.(Restorable); ok {
		if sign, ok := s.Restored(); ok {
			o.sign = sign
			o.Log.Error("the store of worker ids was restored: ids with a new claim begin later", "why", sign)
		}
	}
	if o.sign == "" {
		return nil
	}
	if err := o.clockOff(ctx); err != nil {
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
	if t.floor == known || t.floor.Since < o.good { // it is of before
		f := r.floor(t)
		if last := max(t.floor.Mark, known.Mark); f.Since <= last {
			f = r.above(last + 1)
		}
		if err := t.write(asking, o.Store, f); err != nil {
			return err
		}
	}
	o.sign = ""
	return nil
}

// DefaultMargin is how far the clocks of nodes are taken to be ahead at most.
func DefaultMargin(hold time.Duration) time.Duration { return min(10*time.Second, hold/3) }

// check returns the table, if the clock may be believed. It makes Hold the longest that there
// is.
func (r *Restored) check(ctx context.Context, s Store, prefix string) (t table, err error) {
	if t, err = read(ctx, s, keys{prefix}); err != nil {
		return t, err
	}
	highest := uint64(0)
	for _, e := range t.entries {
		r.Hold = max(r.Hold, time.Duration(e.Hold)*time.Millisecond)
		highest = max(highest, e.Mark)
	}
	if r.Sure {
		return t, nil
	}
	if s, ok := s.(Dated); ok {
		for _, off := range s.Clocks(ctx, r.Clock) {
			if off.Abs() > r.Margin {
				return t, fmt.Errorf("flake: the clock here is %v ahead of one of the store's machines, and the margin is %v: set it right", off, r.Margin)
			}
		}
	}
	if now := r.Clock(); now+uint64(r.Hold/time.Millisecond) < highest {
		return t, fmt.Errorf("flake: the clock here says %s, and there is a mark at %s, further on than hold, %v: set it right",
			show(now), show(highest), r.Hold)
	}
	return t, nil
}

func (r Restored) floor(t table) Floor {
	until := r.Clock()
	if r.Until > 0 {
		until = min(until, r.Until)
	}
	return r.above(until + uint64(r.Margin/time.Millisecond))
}

func (r Restored) above(since uint64) Floor {
	return Floor{Since: since, Mark: since + uint64(r.Hold/time.Millisecond), Nonce: max(r.Nonce, 1)}
}

// write puts a floor in the place of the one that was read.
func (t table) write(ctx context.Context, s Store, f Floor) error {
	key := t.keys.floor()
	var failed error
	for range tries {
		ok, err := s.Swap(ctx, map[string]string{key: t.floor.String()}, key, f.String())
		if err == nil && ok {
			return nil
		}
		failed = err
		texts, err := s.Get(ctx, key)
		switch {
		case err != nil:
			return errors.Join(failed, err)
		case texts[0] == f.String():
			return nil
		case texts[0] != t.floor.String():
			return errors.New("flake: another has written the floor meanwhile: look at what there is now, and try again")
		}
	}
	return fmt.Errorf("flake: the floor was not written in %d attempts: %w", tries, failed)
}

// Release takes a number from its owner, which claims another. The mark stays, and others
// may claim the number once that is past.
//
// If the claim began later than now allows any, by a clock that was far ahead, others may claim
// the number at once: what the claim may have spent is kept, and no other comes into it.
func Release(ctx context.Context, s Store, prefix string, number, now uint64) (Value, error) {
	k := keys{prefix}
	for range tries {
		texts, err := s.Get(ctx, k.number(number))
		if err != nil {
			return Value{}, err
		}
		v, err := parseValue(texts[0])
		switch {
		case texts[0] == "":
			return Value{}, fmt.Errorf("flake: nobody has ever had worker id %d", number)
		case err != nil:
			return Value{}, foreign(k.number(number), texts[0])
		case v.ahead(now):
			v.Spent, v.Mark = Span{v.After, max(v.Spent.Mark, v.Mark)}, v.Base
		case v.Free:
			return v, nil
		}
		v.Generation, v.Token, v.Free, v.After, v.Base = v.Generation+1, random(), true, max(v.Mark, v.Spent.Mark), 0
		if ok, err := s.Swap(ctx, map[string]string{k.number(number): texts[0]}, k.number(number), v.String()); ok || err != nil {
			return v, err
		}
	}
	return Value{}, fmt.Errorf("flake: worker id %d was not released in %d attempts: others write it", number, tries)
}

// ahead reports whether the claim leaves time for others now. One that was released by a node of
// before says that it began at its mark, and is not known.
func (v Value) ahead(now uint64) bool {
	return v.Base > 0 && v.After < v.Mark && now+v.Hold <= v.After
}
