package tick

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// However long a measurement takes, the clock never runs back nor ahead while
// the wall clock is not stepped; and a step is seen by the first measurement
// that takes less time than it is long.
func TestMeasure(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	gap := func() int64 { return rng.Int64N(1 << rng.IntN(25)) } // to 16 ms
	var c systemClock
	mono, offset := int64(1), int64(time.Hour)
	c.offset.Store(offset - gap())
	last := int64(0)
	for i := range 200_000 {
		stepped := i%1000 == 999
		by := int64(0)
		if stepped {
			by = rng.Int64N(2*int64(time.Second)) - int64(time.Second)
			offset += by
		}
		mono += gap()
		before := mono
		mono += gap()
		wall := mono + offset
		mono += gap()
		if !stepped { // another reads the clock just before it is measured
			last = c.offset.Load() + mono
		}
		c.measure(before, wall, mono)
		reading := c.offset.Load() + mono
		if !stepped && reading < last {
			t.Fatalf("runs back by %d", last-reading)
		}
		if width := mono - before; !stepped && reading > mono+offset || abs(by) > width && abs(reading-mono-offset) > width {
			t.Fatalf("after a step by %d, measured within %d: off by %d", by, width, reading-mono-offset)
		}
		if stepped { // what is less than a measurement may stay: start anew
			c.offset.Store(offset - gap())
		}
		last = c.offset.Load() + mono
	}
}

func abs(n int64) int64 { return max(n, -n) }

func TestSystemClock(t *testing.T) {
	before := uint64(time.Now().UnixMilli())
	clock := SystemClock()
	if now := clock(); now < before {
		t.Errorf("the first reading is %d, after %d", now, before)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := uint64(0)
			for range 200_000 {
				now := clock()
				if now < last {
					t.Errorf("the clock went from %d back to %d", last, now)
					return
				}
				if wall := uint64(time.Now().UnixMilli()); now > wall {
					t.Errorf("the clock says %d, the wall clock %d", now, wall)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}

func TestSystemClockSeesSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		c := &systemClock{base: time.Now()}
		c.offset.Store(c.base.UnixNano() + int64(step))
		for abs(int64(c.milli())-time.Now().UnixMilli()) >= time.Hour.Milliseconds()/2 {
			runtime.Gosched() // the deadline of go test ends it if it never is seen
		}
	}
}
