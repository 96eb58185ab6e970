package idhttp

import (
	"strconv"
	"sync"
	"time"

	"github.com/flake-go/flake/node/latency"
)

// doors are the names of those that calls come in by.
var doors = [2]string{"erlang", "http"}

// latencies returns how long answers took, by door.
func (s *Server) latencies(t Traffic) (all [len(doors)]latency.Counts) {
	all[0] = t.Latency
	all[1].Collect(&s.took)
	return all
}

// lately keeps how long answers took by door, second by second.
type lately struct {
	mu      sync.Mutex
	samples [][len(doors)]latency.Counts // of up to a minute, the oldest first
}

const minute = 60 // s

func (l *lately) add(now [len(doors)]latency.Counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.samples) > minute {
		copy(l.samples, l.samples[1:])
		l.samples = l.samples[:minute]
	}
	l.samples = append(l.samples, now)
}

// get returns the counts of the last minute, and how many seconds that has.
func (l *lately) get() (counts [len(doors)]latency.Counts, seconds int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seconds = len(l.samples) - 1
	for door := range counts {
		if seconds > 0 {
			counts[door] = l.samples[seconds][door].Since(l.samples[0][door])
		}
	}
	return counts, seconds
}

// latencyState is how long answers took at a door.
type latencyState struct{ Door, Rate, Half, Most string }

func latenciesOf(counts [len(doors)]latency.Counts, seconds int) (all []latencyState) {
	for door, c := range counts {
		if n := c.Total(); n > 0 {
			name := map[string]string{"erlang": "Erlang", "http": "HTTP"}[doors[door]]
			all = append(all, latencyState{name, thousands(n / uint64(seconds)), within(c, .5), within(c, .99)})
		}
	}
	return all
}

// within says how long this part of the calls took at most.
func within(c latency.Counts, part float64) string {
	if bound, ok := c.Within(part); ok {
		return brief(bound)
	}
	return "over " + brief(latency.Bounds[len(latency.Bounds)-1])
}

// brief writes a bound as 2.5 ms.
func brief(d time.Duration) string {
	unit, of := "s", time.Second
	switch {
	case d < time.Millisecond:
		unit, of = "µs", time.Microsecond
	case d < time.Second:
		unit, of = "ms", time.Millisecond
	}
	return strconv.FormatFloat(float64(d)/float64(of), 'f', -1, 64) + " " + unit
}

// errorState is what went wrong over time.
type errorState struct {
	Chart                chart
	Rate, Calls, Callers string // errors a second now, and in all
}

func errorsOf(h rates, refusals uint64, t Traffic) errorState {
	return errorState{h.chart("Errors"), thousands(h.rate()), thousands(refusals), thousands(t.refused())}
}

// refused is how many callers were refused, or hung up on for what they did.
func (t Traffic) refused() (n uint64) {
	for _, by := range []map[string]uint64{t.HandshakeFailures, t.Closes} {
		for _, times := range by {
			n += times
		}
	}
	return n
}

// certificates returns when those that there are end, by door.
func (s *Server) certificates() map[string]time.Time {
	all := make(map[string]time.Time)
	if s.Node.CertificateEnds != nil {
		all["erlang"] = s.Node.CertificateEnds()
	}
	if s.TLS != nil {
		if c := s.TLS().Certificates; len(c) > 0 && c[0].Leaf != nil {
			all["http"] = c[0].Leaf.NotAfter
		}
	}
	return all
}
