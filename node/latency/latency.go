// Package latency counts calls, or saves, by how long they took, in histograms like those of Prometheus,
// without locks or allocations.
package latency

import (
	"sync/atomic"
	"time"
)

const us = time.Microsecond

// Bounds are the upper bounds of the histogram's buckets. The last bucket has no bound.
var Bounds = [...]time.Duration{
	5 * us, 10 * us, 25 * us, 50 * us, 100 * us, 250 * us, 500 * us,
	1000 * us, 2500 * us, 5000 * us, 10_000 * us, 25_000 * us, 50_000 * us, 100_000 * us,
	250_000 * us, 500_000 * us, 1_000_000 * us, 5_000_000 * us,
}

// Histogram counts calls. It is safe for concurrent use.
type Histogram struct {
	calls [len(Bounds) + 1]atomic.Uint64 // by bucket
	sum   atomic.Int64                   // total duration, below maxSum
	wraps atomic.Int64                   // how often maxSum was subtracted from sum
	_     [24]byte                       // fills the cache line, because histograms are in arrays
}

// Add counts calls that each took the given time.
func (h *Histogram) Add(took time.Duration, calls uint64) {
	i := 0
	for i < len(Bounds) && took > Bounds[i] {
		i++
	}
	h.calls[i].Add(calls)
	if h.sum.Add(int64(took)*int64(calls)) >= maxSum {
		h.sum.Add(-maxSum)
		h.wraps.Add(1)
	}
}

// maxSum, 146 years, is half of the largest possible sum. The durations of calls that wait at the
// same time add up, and can reach it within hours.
const maxSum = 1 << 62

// Counts holds what histograms have counted.
type Counts struct {
	Calls [len(Bounds) + 1]uint64 // by bucket
	Sum   float64                 // total duration in seconds
}

// Collect adds the counts of h.
func (c *Counts) Collect(h *Histogram) {
	for i := range h.calls {
		c.Calls[i] += h.calls[i].Load()
	}
	c.Sum += time.Duration(h.sum.Load()).Seconds() + float64(h.wraps.Load())*time.Duration(maxSum).Seconds()
}

// Since returns what was counted between the collections of before and c.
func (c Counts) Since(before Counts) Counts {
	for i, n := range before.Calls {
		c.Calls[i] -= n
	}
	c.Sum -= before.Sum
	return c
}

// Total returns the number of calls.
func (c Counts) Total() (n uint64) {
	for _, calls := range c.Calls {
		n += calls
	}
	return n
}

// Within returns the lowest bound within which at least the given fraction of the calls was
// answered. ok is false if there is none.
func (c Counts) Within(fraction float64) (bound time.Duration, ok bool) {
	want, n := fraction*float64(c.Total()), uint64(0)
	for i, bound := range Bounds {
		if n += c.Calls[i]; n > 0 && float64(n) >= want {
			return bound, true
		}
	}
	return 0, false
}
