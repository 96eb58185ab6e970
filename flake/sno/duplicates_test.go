package sno

import (
	"flag"
	"slices"
	"sync"
	"testing"
)

var duplicatesIDs = flag.Int("duplicates.ids", 1_000_000, "how many ids to make from 8 goroutines")

func TestNoDuplicates(t *testing.T) {
	const goroutines = 8
	g := newGenerator(t, nil, nil)
	ids := make([]ID, *duplicatesIDs)
	var wg sync.WaitGroup
	i := 0
	for part := range slices.Chunk(ids, (len(ids)+goroutines-1)/goroutines) {
		size := []int{1, 1, 1, 16, 1, 3, 1, 256}[i]
		i++
		wg.Go(func() {
			var last ID
			for some := range slices.Chunk(part, size) {
				var err error
				if size == 1 {
					some[0], err = g.New(1)
				} else {
					_, err = g.NewN(t.Context(), 1, some)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if some[0].Compare(last) <= 0 && g.Snapshot().Drifts == 0 {
					t.Errorf("%v after %v", some[0], last)
				}
				last = some[len(some)-1]
			}
		})
	}
	wg.Wait()
	Sort(ids)
	twice := 0
	for i := range ids[1:] {
		if ids[i] == ids[i+1] {
			twice++
		}
	}
	t.Logf("%d ids from %d goroutines: %d twice", len(ids), goroutines, twice)
	if twice > 0 {
		t.Error("that is wrong")
	}
}
