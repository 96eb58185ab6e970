// Package duplicates finds duplicate ids in tests of the formats. See [Check].
package duplicates

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// Generator makes the ids that Check checks.
type Generator[ID any] interface {
	Next(ctx context.Context) (ID, error)
	NextN(ctx context.Context, dst []ID) (int, error)
}

// Check makes n ids in 8 goroutines; some make ids one by one, others many at a time. The test
// fails if an id is a duplicate, or is not after the last id of its goroutine.
//
// The function place must return a different number for each id. The numbers must rise with
// time and be dense, since Check uses a bit for each number.
func Check[ID any](t *testing.T, n int, g Generator[ID], place func(ID) uint64, after func(id, last ID) bool) {
	t.Helper()
	first, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := new(seen)
	if !s.add(place(first)) || s.add(place(first)) {
		t.Fatal("a duplicate id is not found")
	}
	sizes := []int{1, 1, 1, 16, 1, 3, 1, 256} // ids per call, one element per goroutine
	var wg sync.WaitGroup
	var twice, disorder atomic.Int64
	for _, size := range sizes {
		wg.Go(func() {
			ids := make([]ID, size)
			var last ID
			for left := n / len(sizes); left > 0; {
				made, err := 1, error(nil)
				if size == 1 {
					ids[0], err = g.Next(t.Context())
				} else {
					made, err = g.NextN(t.Context(), ids[:min(left, size)])
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, id := range ids[:made] {
					if !s.add(place(id)) {
						twice.Add(1)
					}
					if !after(id, last) {
						disorder.Add(1)
					}
					last = id
				}
				left -= made
			}
		})
	}
	wg.Wait()
	t.Logf("%d ids from %d goroutines: %d duplicates, %d out of order", n, len(sizes), twice.Load(), disorder.Load())
	if twice.Load()+disorder.Load() != 0 {
		t.Error("ids are duplicates or out of order")
	}
}

// seen has a bit for each place. All goroutines share it.
type seen struct {
	pages sync.Map // *page by place / pageBits
}

const pageBits = 1 << 16

type page [pageBits / 64]atomic.Uint64

// add adds a place and reports whether it was new.
func (s *seen) add(place uint64) bool {
	p, ok := s.pages.Load(place / pageBits)
	if !ok {
		p, _ = s.pages.LoadOrStore(place/pageBits, new(page))
	}
	bit := uint64(1) << (place % 64)
	return p.(*page)[place%pageBits/64].Or(bit)&bit == 0
}
