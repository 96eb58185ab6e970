package snowflake

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"
)

var duplicatesIDs = flag.Int("duplicates.ids", 10_000_000, "how many ids to make from 8 goroutines, at 4,096,000 a second")

// seen has a bit for every id of a stretch of time, so that any goroutine can
// tell whether any other had the same.
type seen struct {
	first uint64 // millisecond
	pages [1 << 20]atomic.Pointer[page]
}

type page [4096 / 64]atomic.Uint64

// add tells whether the id is new.
func (s *seen) add(t *testing.T, id ID) bool {
	p := Twitter.Decompose(id)
	slot := p.Milli - s.first
	if slot >= uint64(len(s.pages)) {
		t.Errorf("%v is out of time", id)
		return false
	}
	at := s.pages[slot].Load()
	if at == nil {
		s.pages[slot].CompareAndSwap(nil, new(page))
		at = s.pages[slot].Load()
	}
	bit := uint64(1) << (p.Sequence % 64)
	return at[p.Sequence/64].Or(bit)&bit == 0
}

func TestNoDuplicates(t *testing.T) {
	for name, share := range map[string]struct {
		random bool
		ids    int
	}{"from 0": {false, *duplicatesIDs}, "from a random start": {true, *duplicatesIDs / 10}} {
		t.Run(name, func(t *testing.T) { noDuplicates(t, share.random, share.ids) })
	}
}

func noDuplicates(t *testing.T, random bool, ids int) {
	const goroutines = 8
	g := newTest(t, Twitter, MachineID(1), Options{RandomStart: random})
	first := next(t, g)
	s := &seen{first: Twitter.Decompose(first).Milli}
	if !s.add(t, first) || s.add(t, first) {
		t.Fatal("an id is not told to be there twice")
	}
	var wg sync.WaitGroup
	var total, twice, disorder atomic.Int64
	for i := range goroutines {
		wg.Go(func() {
			buf := make([]ID, []int{1, 1, 1, 16, 1, 3, 1, 256}[i])
			var last ID
			for left := ids / goroutines; left > 0; {
				n, err := 1, error(nil)
				if len(buf) == 1 {
					buf[0], err = g.Next()
				} else {
					n, err = g.NextN(buf[:min(left, len(buf))])
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, id := range buf[:n] {
					if !s.add(t, id) {
						twice.Add(1)
					}
					if id <= last && !random || id>>low < last>>low {
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
	if twice.Load()+disorder.Load() != 0 || total.Load() < int64(ids)-goroutines {
		t.Error("that is wrong")
	}
}
