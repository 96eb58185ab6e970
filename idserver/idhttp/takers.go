package idhttp

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// takers are how many ids a second each connected node takes.
type takers struct {
	mu     sync.Mutex
	at     time.Time // of the last look
	before map[taking]uint64
	most   []taker // that take most
	all    int     // how many nodes there are
}

// taking is one connection of a node.
type taking struct {
	name  string
	since time.Time
}

type taker struct {
	Peer
	rate uint64 // since the look before, or since it was connected
}

// look returns the nodes that take most, and how many there are in all. What was seen
// in the same second is not looked at again, however many pages are open.
func (t *takers) look(now time.Time, peers func() []Peer) (most []taker, all int) {
	if peers == nil {
		return nil, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.at) < interval*3/4 {
		return t.most, t.all
	}
	found := peers()
	takers, seen := make([]taker, len(found)), make(map[taking]uint64, len(found))
	for i, p := range found {
		key := taking{p.Name, p.Since}
		before, known := t.before[key]
		from := t.at
		if !known {
			from = p.Since
		}
		takers[i] = taker{p, rate(p.IDs-before, now.Sub(from))}
		seen[key] = p.IDs
	}
	slices.SortFunc(takers, func(a, b taker) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.Name, b.Name))
	})
	t.at, t.before, t.all = now, seen, len(found)
	t.most = slices.Clone(takers[:min(len(takers), maxPeers)])
	return t.most, t.all
}

func rate(n uint64, over time.Duration) uint64 {
	return uint64(math.Round(float64(n) / max(over, interval).Seconds()))
}
