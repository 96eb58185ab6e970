package flakeserver

import "sync/atomic"

// Stats are counts since the server was made.
type Stats struct {
	IDs      uint64      // handed out or leased
	Waits    uint64      // for the next tick, as those of one were used up
	Refusals uint64      // calls answered with an error
	Calls    []CallCount // those that are not 0
}

// CallCount is how many calls of one kind came to the same result.
type CallCount struct {
	Op     Op
	Result string // "ok", or the reason of the error
	Calls  uint64
}

// Stats gives the counts as they stand.
func (s *Server) Stats() (all Stats) {
	for op := range Op(ops) {
		for result, word := range results {
			n := s.counts.calls[op][result].Load()
			if n == 0 {
				continue
			}
			all.Calls = append(all.Calls, CallCount{op, string(word), n})
			if result != 0 {
				all.Refusals += n
			}
		}
	}
	all.IDs = s.counts.calls[OpGet][0].Load() + s.counts.ids.Load()
	all.Waits = s.IDs.Waits()
	return all
}

// counts are of all callers together. A call adds to one word that all of them share, as
// it does to take its id.
type counts struct {
	calls [ops][len(results)]atomic.Uint64
	ids   atomic.Uint64 // but those of OpGet, which are as many as its calls
}

func (c *counts) add(r *Reply) {
	c.calls[r.Op][resultOf(r.Err)].Add(1)
	if r.Runs != nil {
		c.ids.Add(uint64(r.count()))
	}
}
