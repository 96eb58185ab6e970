package loadgen

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Times are counted in steps. A time's step is 1/64 of the largest power of two not above the
// time, so a percentile is at most 1.6 % too large.
const (
	stepBits = 6
	steps    = 1 << stepBits
)

// latency counts how many calls took each time. It is safe for concurrent use.
type latency struct {
	counts [(64 - stepBits) * steps]atomic.Uint64
	max    atomic.Int64
}

// stepOf returns the index in counts for a time.
func stepOf(d time.Duration) int {
	n := uint64(max(d, 0))
	shift := max(bits.Len64(n)-stepBits-1, 0)
	return shift*steps + int(n>>shift)
}

// endOf returns the longest time that is counted in a step.
func endOf(step int) time.Duration {
	shift := max(step/steps-1, 0)
	return time.Duration(uint64(step-shift*steps+1)<<shift - 1)
}

func (l *latency) add(d time.Duration) {
	l.counts[stepOf(d)].Add(1)
	l.atLeast(d)
}

// atLeast raises the maximum to d.
func (l *latency) atLeast(d time.Duration) {
	for {
		was := l.max.Load()
		if int64(d) <= was || l.max.CompareAndSwap(was, int64(d)) {
			return
		}
	}
}

// percentiles returns, for each fraction in parts, the time that this fraction of all times does
// not exceed. parts ascends.
func (l *latency) percentiles(parts ...float64) []time.Duration {
	total := uint64(0)
	for i := range l.counts {
		total += l.counts[i].Load()
	}
	all := make([]time.Duration, len(parts))
	below, next := uint64(0), 0
	for i := range l.counts {
		below += l.counts[i].Load()
		for next < len(parts) && total > 0 && below >= uint64(math.Ceil(parts[next]*float64(total))) {
			all[next] = min(endOf(i), time.Duration(l.max.Load()))
			next++
		}
	}
	return all
}
