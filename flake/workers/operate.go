package workers

import (
	"context"
	"fmt"
	"time"
)

// AfterRestore writes the floor of a store that was restored from a snapshot. Call it
// before nodes reach the store. Hold is the longest hold of any of them; margin is how
// far at most their clocks are ahead of now.
//
// An owner whose mark is ahead of now and margin goes on: nobody can have claimed its
// number, as its mark was not past for anybody. All others claim anew, and their ids
// begin hold later. This holds for owners that knew the store as it was until now. So
// after a second restore within hold, the margin must reach beyond the mark of the first
// floor, which no owner can have passed without having seen that floor. AfterRestore sees
// to a floor that the store still has.
func AfterRestore(ctx context.Context, s Store, prefix string, hold, margin time.Duration, now uint64, nonce uint64) (Floor, error) {
	k := keys{prefix}
	t, err := read(ctx, s, k)
	if err != nil {
		return Floor{}, err
	}
	since := max(now+uint64(margin/time.Millisecond), t.floor.Mark+1)
	f := Floor{Since: since, Mark: since + uint64(hold/time.Millisecond), Nonce: max(nonce, 1)}
	for range tries {
		ok, err := s.Swap(ctx, map[string]string{k.floor(): t.floor.String()}, k.floor(), f.String())
		if err == nil && ok {
			return f, nil
		}
		texts, err := s.Get(ctx, k.floor())
		if err != nil {
			return Floor{}, err
		}
		if texts[0] == f.String() {
			return f, nil
		}
		if t.floor, err = parseFloor(texts[0]); err != nil {
			return Floor{}, foreign(k.floor(), texts[0])
		}
	}
	return Floor{}, fmt.Errorf("flake: the floor was not written in %d attempts", tries)
}

// Release takes a number from its owner, which claims another. The mark stays, and others
// may claim the number once that is past.
func Release(ctx context.Context, s Store, prefix string, number uint64) error {
	k := keys{prefix}
	for range tries {
		texts, err := s.Get(ctx, k.number(number))
		if err != nil {
			return err
		}
		v, err := parseValue(texts[0])
		switch {
		case texts[0] == "":
			return fmt.Errorf("flake: nobody has ever had worker id %d", number)
		case err != nil:
			return foreign(k.number(number), texts[0])
		case v.Free:
			return nil
		}
		v.Generation, v.Token, v.Free = v.Generation+1, random(), true
		if ok, err := s.Swap(ctx, map[string]string{k.number(number): texts[0]}, k.number(number), v.String()); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("flake: worker id %d was not released in %d attempts", number, tries)
}
