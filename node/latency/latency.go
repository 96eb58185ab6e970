// Package latency counts calls by how long their answers took, without a lock or an
// allocation: as a histogram for Prometheus, and for people.
package latency

import (
	"sync/atomic"
	"time"
)

const us = time.Microsecond

// Bounds are the times within which calls are counted; the others took longer.
var Bounds = [...]time.Duration{
	5 * us, 10 * us, 25 * us, 50 * us, 100 * us, 250 * us, 500 * us,
	1000 * us, 2500 * us, 5000 * us, 10_000 * us, 25_000 * us, 50_000 * us, 100_000 * us,
	250_000 * us, 500_000 * us, 1_000_000 * us, 5_000_000 * us,
}

// Histogram counts calls. Any number of goroutines may use it.
type Histogram struct {
	calls [len(Bounds) + 1]atomic.Uint64 // by the least bound that they kept
	sum   atomic.Int64                   // of the times, below most
	mosts atomic.Int64                   // how often it was most
	_     [24]byte                       // to whole cache lines, as several are side by side
}

// Add counts calls that took so long each.
func (h *Histogram) Add(took time.Duration, calls uint64) {
	i := 0
	for i < len(Bounds) && took > Bounds[i] {
		i++
	}
	h.calls[i].Add(calls)
	if h.sum.Add(int64(took)*int64(calls)) >= most {
		h.sum.Add(-most)
		h.mosts.Add(1)
	}
}

// most is half of what the sum holds, 146 years. Peers whose calls wait in line for each
// other pass it within hours.
const most = 1 << 62

// Counts are what histograms have counted.
type Counts struct {
	Calls [len(Bounds) + 1]uint64 // by the least bound that they kept; the last by none
	Sum   float64                 // of the times of all, in seconds
}

// Collect adds what a histogram has counted.
func (c *Counts) Collect(h *Histogram) {
	for i := range h.calls {
		c.Calls[i] += h.calls[i].Load()
	}
	c.Sum += time.Duration(h.sum.Load()).Seconds() + float64(h.mosts.Load())*time.Duration(most).Seconds()
}

// Since returns what has been counted since before.
func (c Counts) Since(before Counts) Counts {
	for i, n := range before.Calls {
		c.Calls[i] -= n
	}
	c.Sum -= before.Sum
	return c
}

// Total returns how many calls there were.
func (c Counts) Total() (n uint64) {
	for _, calls := range c.Calls {
		n += calls
	}
	return n
}

// Within returns the least bound that this part of the calls kept, from 0 to 1, and
// whether there is one.
func (c Counts) Within(part float64) (bound time.Duration, ok bool) {
	want, n := part*float64(c.Total()), uint64(0)
	for i, bound := range Bounds {
		if n += c.Calls[i]; n > 0 && float64(n) >= want {
			return bound, true
		}
	}
	return 0, false
}
