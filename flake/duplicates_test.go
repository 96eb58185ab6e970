package flake

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"
)

var duplicatesIDs = flag.Int("duplicates.ids", 4_000_000, "how many ids to make from 8 goroutines")

// seen has a bit for every id of a stretch of time, so that any goroutine can
// tell whether any other had the same.
type seen struct {
	first uint64 // millisecond
	pages [1 << 20]atomic.Pointer[page]
}

type page [perMilli / 64]atomic.Uint64

// add tells whether the id is new.
func (s *seen) add(t *testing.T, id ID) bool {
	slot := id.Milli() - s.first
	if slot >= uint64(len(s.pages)) {
		t.Errorf("%v is out of time", id)
		return false
	}
	p := s.pages[slot].Load()
	if p == nil {
		s.pages[slot].CompareAndSwap(nil, new(page))
		p = s.pages[slot].Load()
	}
	bit := uint64(1) << (id.Sequence() % 64)
	return p[id.Sequence()/64].Or(bit)&bit == 0
}

func TestSeen(t *testing.T) {
	s := &seen{first: 1000}
	for _, id := range []ID{Make(1000, 0, 0), Make(1000, 0, 65535), Make(1001, 0, 0), Make(1001, 0, 64)} {
		if !s.add(t, id) || s.add(t, id) {
			t.Errorf("%v is not told to be there twice", id)
		}
	}
}

func TestNoDuplicates(t *testing.T) {
	const goroutines = 8
	g := newGenerator(t, nil)
	s := &seen{first: next(t, g).Milli()}
	var wg sync.WaitGroup
	var total, twice, disorder atomic.Int64
	for i := range goroutines {
		wg.Go(func() {
			ids := make([]ID, []int{1, 1, 1, 16, 1, 3, 1, 256}[i])
			var last ID
			for left := *duplicatesIDs / goroutines; left > 0; {
				n, err := 1, error(nil)
				if len(ids) == 1 {
					ids[0], err = g.Next()
				} else {
					n, err = g.NextN(ids[:min(left, len(ids))])
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, id := range ids[:n] {
					if !s.add(t, id) {
						twice.Add(1)
					}
					if id.Compare(last) <= 0 {
						disorder.Add(1)
					}
					last = id
				}
				left -= n
				total.Add(int64(n))
			}
		})
	}
	wg.Wait()
	t.Logf("%d ids from %d goroutines: %d twice, %d out of order", total.Load(), goroutines, twice.Load(), disorder.Load())
	if twice.Load()+disorder.Load() != 0 || total.Load() < int64(*duplicatesIDs)-goroutines {
		t.Error("that is wrong")
	}
}
