package idhttp

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
)

// window is how many seconds the chart shows.
const window = 120

// history keeps how many ids each generator had handed out, second by second.
type history struct {
	mu      sync.Mutex
	samples [][]sample // by generator, the oldest first
	next    chan struct{}
}

type sample struct {
	at  time.Time
	ids uint64
}

func newHistory(generators int) *history {
	return &history{samples: make([][]sample, generators), next: make(chan struct{})}
}

// add takes the counts of now, by generator, and tells who awaits them.
func (h *history) add(now time.Time, ids []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, n := range ids {
		s := append(h.samples[i], sample{now, n})
		if len(s) > window+1 {
			s = slices.Delete(s, 0, 1)
		}
		h.samples[i] = s
	}
	close(h.next)
	h.next = make(chan struct{})
}

// awaited is closed at the next add.
func (h *history) awaited() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// rates are ids a second by generator, of each second the chart shows, the last
// one now.
type rates [][]uint64

func (h *history) snapshot() rates {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(rates, len(h.samples))
	for i, samples := range h.samples {
		for j := 1; j < len(samples); j++ {
			n := samples[j].ids - samples[j-1].ids
			passed := samples[j].at.Sub(samples[j-1].at).Seconds()
			all[i] = append(all[i], uint64(math.Round(float64(n)/passed)))
		}
	}
	return all
}

// sums adds up the generators' rates, second by second.
func (r rates) sums() []uint64 {
	var all []uint64
	for _, of := range r {
		if all == nil {
			all = make([]uint64, len(of))
		}
		for i, n := range of {
			all[i] += n
		}
	}
	return all
}

func last(all []uint64) uint64 {
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

func (r rates) rate() uint64        { return last(r.sums()) }
func (r rates) rateOf(i int) uint64 { return last(r[i]) }

func (r rates) peak() uint64 {
	most := uint64(0)
	for _, n := range r.sums() {
		most = max(most, n)
	}
	return most
}

// chart is a drawing of width window and height 100.
type chart struct {
	Line, Area string // of SVG paths
	Top, Half  string // what the height stands for, and half of it
	Width      int
	Label      string // the same in words
}

// chart draws what the rates are of.
func (r rates) chart(of string) chart {
	all := r.sums()
	top := ceiling(r.peak())
	c := chart{
		Top: short(top), Half: short(top / 2), Width: window,
		Label: of + " a second over the last two minutes: at most " + thousands(r.peak()) + ", now " + thousands(r.rate()) + ".",
	}
	if len(all) == 0 {
		return c
	}
	var line []byte
	first := window - len(all) + 1
	for i, n := range all {
		line = append(line, " L"...)
		line = strconv.AppendInt(line, int64(first+i), 10)
		line = append(line, ' ')
		line = strconv.AppendFloat(line, 100-100*float64(n)/float64(top), 'f', 2, 64)
	}
	line[1] = 'M'
	c.Line = string(line[1:])
	c.Area = c.Line + " V100 H" + strconv.Itoa(first) + " Z"
	return c
}

// ceiling is the next of 10, 20, 40, 100, 200, ..., whose half is as round.
func ceiling(n uint64) uint64 {
	for power := uint64(10); ; power *= 10 {
		for _, factor := range []uint64{1, 2, 4} {
			if n <= power*factor || power > math.MaxUint64/100 {
				return power * factor
			}
		}
	}
}

// short writes a round number as 400 k.
func short(n uint64) string {
	switch {
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + " M"
	case n >= 1e3:
		return strconv.FormatFloat(float64(n)/1e3, 'f', -1, 64) + " k"
	}
	return strconv.FormatUint(n, 10)
}

// track shows the last id, the clock and the mark on a line of width 100.
type track struct {
	Last, Now, Mark string // where, or empty
}

// The track is from a second before the clock to four after it: the mark is two
// to three ahead.
const (
	trackBefore = 1.0
	trackAfter  = 4.0
)

func trackOf(now, last, mark time.Time) track {
	at := func(t time.Time) string {
		x := 100 * (t.Sub(now).Seconds() + trackBefore) / (trackBefore + trackAfter)
		return strconv.FormatFloat(min(max(x, 0), 100), 'f', 1, 64)
	}
	t := track{Last: at(last), Now: at(now)}
	if !mark.IsZero() {
		t.Mark = at(mark)
	}
	return t
}
