package idhttp

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/latency"
	"github.com/flake-go/flake/node/traffic"
)

const (
	interval  = time.Second // between two samples, or two events of the page
	window    = 120         // seconds that the charts show
	minute    = 60          // seconds that the latencies cover
	peersEach = 10          // seconds between two samples of the peers while no page is open
)

// doors are the names of the doors through which calls arrive.
var doors = [2]string{"erlang", "http"}

// sample contains all counts at one time. Samples are a second apart.
type sample struct {
	at        time.Time
	ids       []uint64 // per generator
	errors    uint64   // refused calls and callers
	latencies [len(doors)]latency.Counts
}

type samples struct {
	mu   sync.Mutex    // guards all and next
	all  []sample      // oldest first
	next chan struct{} // closed at the next add
}

func (s *samples) add(one sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) > window {
		s.all = slices.Delete(s.all, 0, 1)
	}
	s.all = append(s.all, one)
	close(s.next)
	s.next = make(chan struct{})
}

// awaited returns a channel that is closed at the next add.
func (s *samples) awaited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *samples) get() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// sample adds a sample every second and records which generators are in trouble.
func (d *Door) sample() {
	tick := time.Tick(interval)
	saved := make([]time.Time, len(d.Generators))
	for n := 0; ; n++ {
		now := time.Now()
		t := d.Node.Traffic()
		one := sample{at: now, errors: d.callersRefused(t), latencies: d.latencies(t)}
		for i := range d.Generators {
			g := &d.Generators[i]
			stats := g.Server.Stats()
			one.ids = append(one.ids, stats.IDs)
			one.errors += stats.Refusals
			if !g.idle(&saved[i]) { // trouble would make an idle generator write the file
				_, err := g.trouble()
				d.onsets.note(i, err, now)
			}
		}
		if n%peersEach == 0 {
			d.peers.update(now, d.Node.Peers)
		}
		wall := now.Round(0) // strips the monotonic time
		if step := d.steps.note(wall, now.Sub(d.started)); step != 0 {
			d.Log.Info("the clock was set, or the machine slept", "by", step.Round(time.Millisecond))
		}
		d.samples.add(one)
		select {
		case <-tick:
		case <-d.ctx.Done():
			return
		}
	}
}

// latencies returns how long the answers since the start took, by door.
func (d *Door) latencies(t traffic.Counts) (all [len(doors)]latency.Counts) {
	all[0] = t.Latency
	all[1].Collect(&d.took)
	return all
}

// minStep is the smallest difference that counts as a step of the clock. A clock that runs
// slow or fast, or is read late, deviates by less from one second to the next.
const minStep = 250 * time.Millisecond

// stepCounts counts how many times the machine's clock was set.
type stepCounts struct {
	start         time.Time // when the program started, according to the clock at the last call to note
	back, forward atomic.Uint64
}

// note compares the clock with the time that has passed since the start. It returns by how much
// the clock was set since the last call, or 0 if that is less than minStep.
func (s *stepCounts) note(wall time.Time, passed time.Duration) (step time.Duration) {
	start := wall.Add(-passed)
	if !s.start.IsZero() {
		step = start.Sub(s.start)
	}
	s.start = start
	switch {
	case step <= -minStep:
		s.back.Add(1)
	case step >= minStep:
		s.forward.Add(1)
	default:
		return 0
	}
	return step
}

// peerRates tracks how many ids per second each connected node takes.
type peerRates struct {
	mu     sync.Mutex // guards the fields below
	at     time.Time  // time of the last update
	before map[connection]uint64
	all    []peerRate // the nodes that take the most ids first
}

type connection struct {
	name  string
	since time.Time
}

type peerRate struct {
	traffic.Peer
	rate uint64 // since the last update, or since the node connected
}

// update returns all nodes, those that take the most ids first. If it is called again within
// three quarters of interval, it returns the same result, so more pages cause no more work.
func (r *peerRates) update(now time.Time, peers func() []traffic.Peer) []peerRate {
	if peers == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.at) < interval*3/4 {
		return r.all
	}
	found := peers()
	all, seen := make([]peerRate, len(found)), make(map[connection]uint64, len(found))
	for i, p := range found {
		key := connection{p.Name, p.Since}
		before, known := r.before[key]
		from := r.at
		if !known {
			from = p.Since
		}
		over := max(now.Sub(from), interval)
		all[i] = peerRate{p, uint64(math.Round(float64(p.IDs-before) / over.Seconds()))}
		seen[key] = p.IDs
	}
	slices.SortFunc(all, func(a, b peerRate) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.Name, b.Name))
	})
	r.at, r.before, r.all = now, seen, all
	return all
}
