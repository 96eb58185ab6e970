package workers

import (
	"context"
	"fmt"
	"time"
)

// AfterRestore writes the floor of a store that was restored from a snapshot. It is to
// be called before nodes reach the store. Hold is the longest that any of them has;
// margin is how far at most a clock of theirs is ahead of now.
//
// An owner whose mark is ahead of now and margin goes on, for then nobody can have
// claimed its number. All others claim anew, and their ids begin hold later.
func AfterRestore(ctx context.Context, s Store, prefix string, hold, margin time.Duration, now uint64, nonce uint64) (Floor, error) {
	k := keys{prefix}
	t, err := read(ctx, s, k)
	if err != nil {
		return Floor{}, err
	}
	since := now + uint64(margin/time.Millisecond)
	f := Floor{Since: since, Mark: max(since+uint64(hold/time.Millisecond), t.floor.Mark), Nonce: max(nonce, 1)}
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
