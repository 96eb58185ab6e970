package latency

import (
	"math"
	"testing"
	"time"
	"unsafe"
)

// Calls are counted by the lowest bound within which they were answered.
func TestHistogram(t *testing.T) {
	var h, other Histogram
	h.Add(0, 1)
	h.Add(Bounds[0], 2)
	h.Add(Bounds[0]+1, 3)
	var before Counts
	before.Collect(&h)
	other.Add(Bounds[len(Bounds)-1], 4)
	other.Add(Bounds[len(Bounds)-1]+1, 5)
	var all Counts
	all.Collect(&h)
	all.Collect(&other)
	last := len(Bounds) - 1
	if c := all.Calls; c[0] != 3 || c[1] != 3 || c[last] != 4 || c[last+1] != 5 || all.Total() != 15 {
		t.Errorf("calls by bucket: %v", c)
	}
	if want := 5*Bounds[0] + 3 + 9*Bounds[last] + 5; nanos(all.Sum) != want {
		t.Errorf("sum %v, want %v", all.Sum, want)
	}
	since := all.Since(before)
	if since.Total() != 9 || since.Calls[0] != 0 || nanos(since.Sum) != 9*Bounds[last]+5 {
		t.Errorf("since: %+v", since)
	}
	for i := range last {
		if Bounds[i] >= Bounds[i+1] {
			t.Errorf("bound %v is not below %v", Bounds[i], Bounds[i+1])
		}
	}
	if size := unsafe.Sizeof(h); size%64 != 0 {
		t.Errorf("%d bytes, not a multiple of a cache line", size)
	}
}

func nanos(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// The sum of the durations may be centuries.
func TestHistogramLong(t *testing.T) {
	var h Histogram
	const year = 365 * 24 * time.Hour
	for range 1000 {
		h.Add(year, 1)
	}
	var c Counts
	if c.Collect(&h); math.Abs(c.Sum-1000*year.Seconds()) > 1 {
		t.Errorf("the sum is %v s, want 1000 years", c.Sum)
	}
}

// Short calls still count when the sum has reached centuries.
func TestHistogramShortAfterLong(t *testing.T) {
	var h Histogram
	const year = 365 * 24 * time.Hour
	for range 3000 {
		h.Add(year, 1)
	}
	var before, after Counts
	before.Collect(&h)
	const calls = 1_000_000
	for range calls {
		h.Add(2*time.Microsecond, 1)
	}
	after.Collect(&h)
	if got, want := after.Since(before).Sum, 2e-6*calls; math.Abs(got-want) > want/100 {
		t.Errorf("%v s, want %v s", got, want)
	}
}

// Within returns a bound if enough calls were answered within it.
func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		calls map[int]uint64
		part  float64
		want  time.Duration
		ok    bool
	}{
		{nil, .5, 0, false},
		{map[int]uint64{3: 1}, .5, Bounds[3], true},
		{map[int]uint64{3: 1}, 0, Bounds[3], true},
		{map[int]uint64{0: 50, 2: 50}, .5, Bounds[0], true},
		{map[int]uint64{0: 50, 2: 50}, .51, Bounds[2], true},
		{map[int]uint64{0: 98, len(Bounds): 2}, .99, 0, false},
		{map[int]uint64{0: 99, len(Bounds): 1}, .99, Bounds[0], true},
	} {
		var c Counts
		for i, n := range tt.calls {
			c.Calls[i] = n
		}
		if got, ok := c.Within(tt.part); got != tt.want || ok != tt.ok {
			t.Errorf("%v of %v: %v, %t, want %v, %t", tt.part, tt.calls, got, ok, tt.want, tt.ok)
		}
	}
}
