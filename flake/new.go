package flake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// New returns an id, with nothing to set up: a worker id is made up at random when
// the process first calls it. Any number of goroutines may call it. Ids ascend
// as long as the process lives, also when the clock is set back: their time is ahead
// of it then. When the 65,536 of a millisecond are used New waits for the next one.
//
// That no other process, nor this one after a restart, makes the same id is as
// likely as that 47 random bits are not the same in two processes of one
// millisecond; nothing is kept on disk. After a restart with the clock set back,
// ids may be below those before. Where a system may rest on no chance, or on that
// order, there is [Open].
func New() ID {
	id, err := standard().Next(context.Background())
	if err != nil { // never, with this clock
		panic(err)
	}
	return id
}

var standard = sync.OnceValue(func() *Generator {
	g, err := NewGenerator(RandomWorker(), Options{Clock: forwardClock(readMachine())})
	if err != nil {
		panic(err)
	}
	return g
})

// forwardClock returns a clock that follows the wall clock where that is set ahead,
// and where it is set back goes on at the pace of the monotonic one. read returns
// both, in ns.
func forwardClock(read func() (wall, mono int64)) func() uint64 {
	var ahead atomic.Int64 // wall minus monotonic time, the most that was seen
	return func() uint64 {
		wall, mono := read()
		seen := wall - mono
		for {
			most := ahead.Load()
			if seen <= most || ahead.CompareAndSwap(most, seen) {
				return uint64(max(mono+max(seen, most), 0)) / uint64(time.Millisecond)
			}
		}
	}
}

func readMachine() func() (wall, mono int64) {
	base := time.Now()
	return func() (wall, mono int64) {
		now := time.Now()
		return now.UnixNano(), int64(now.Sub(base))
	}
}
