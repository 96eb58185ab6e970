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
			n := s.counts.calls(op, result)
			if n == 0 {
				continue
			}
			all.Calls = append(all.Calls, CallCount{op, string(word), n})
			if result != 0 {
				all.Refusals += n
			}
		}
	}
	all.IDs = s.counts.calls(OpGet, 0)
	for i := range s.counts {
		all.IDs += s.counts[i].ids.Load()
	}
	all.Waits = s.IDs.Waits()
	return all
}

// counts are kept apart for the connections: one count that all of them write
// would cost each call the way to the cache of another processor.
type counts [16]struct {
	all [ops][len(results)]atomic.Uint64
	ids atomic.Uint64 // but those of OpGet, which are as many as its calls
	_   [64]byte      // a cache line between it and the next
}

// add counts a call of the connection.
func (c *counts) add(connection int, r *Reply) {
	own := &c[uint(connection)%uint(len(c))]
	own.all[r.Op][resultOf(r.Err)].Add(1)
	if r.Runs != nil {
		own.ids.Add(uint64(r.count()))
	}
}

func (c *counts) calls(op Op, result int) (n uint64) {
	for i := range c {
		n += c[i].all[op][result].Load()
	}
	return n
}
