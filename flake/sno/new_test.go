package sno

import (
	"sync"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	const callers, each = 8, 20_000
	ids := make([][]ID, callers)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			for range each {
				ids[i] = append(ids[i], New(byte(i)))
			}
		})
	}
	all.Wait()
	seen := make(map[ID]bool)
	partition := New(0).Partition()
	for i, some := range ids {
		for j, id := range some {
			if bare := id.WithMeta(0); seen[bare] || id.Meta() != byte(i) || id.Partition() != partition || j > 0 && id.Compare(some[j-1]) <= 0 {
				t.Fatalf("%v after %v, seen before: %t", id, some[max(j, 1)-1], seen[bare])
			}
			seen[id.WithMeta(0)] = true
		}
	}
	if now := time.Now(); New(0).Time().After(now.Add(time.Minute)) || New(0).Time().Before(now.Add(-time.Minute)) {
		t.Errorf("%v at %v", New(0).Time(), now)
	}
	if g := newGenerator(t, nil, nil); g.Partition() == partition {
		t.Error("a generator has the partition of New")
	}
	if standard().PerTick() < 1<<15 {
		t.Errorf("%d ids a tick", standard().PerTick())
	}
}
