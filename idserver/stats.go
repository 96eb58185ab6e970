package idserver

import (
	"sync/atomic"
	"time"
)

// op is a kind of call.
type op uint8

const (
	opUnknown   op = iota // nothing that is known: answered ok, as the original does
	opGet                 // the next id
	opInvalid             // an argument of the wrong type or out of range
	opGetMany             // ids, ascending
	opGetBinary           // the same, as the bytes of all of them
	opLease               // runs of ids
	opNotional            // the lowest id of a time
	opSpan                // the lowest and the highest id of a span of time
	opDecompose           // the fields of an id
	opInfo                // what the server is, and has done

	ops = 10
)

var kinds = [ops]string{
	"unknown", "get", "invalid", "get_many", "get_binary", "lease", "notional", "span", "decompose", "info",
}

// Stats are counts since the server was made.
type Stats struct {
	IDs      uint64      // handed out or leased
	Waits    uint64      // for the next tick, as those of one were used up
	Refusals uint64      // calls answered with an error
	Calls    []CallCount // those that are not 0
}

// CallCount is how many calls of one kind came to the same result.
type CallCount struct {
	Kind   string // "get", "lease", ...
	Result string // "ok", or the reason of the error
	Calls  uint64
}

// Stats returns the counts as they stand.
func (s *Server) Stats() (all Stats) {
	for op, kind := range kinds {
		for result, r := range results {
			n := s.counts.calls[op][result].Load()
			if n == 0 {
				continue
			}
			all.Calls = append(all.Calls, CallCount{kind, r.word, n})
			if result != 0 {
				all.Refusals += n
			}
		}
	}
	all.IDs = s.counts.calls[opGet][0].Load() + s.counts.ids.Load()
	all.Waits = s.IDs.Waits()
	return all
}

// counts are of all callers together. A call adds to one word that all of them share, as
// it does to take its id.
type counts struct {
	calls [ops][len(results)]atomic.Uint64
	ids   atomic.Uint64 // but those of opGet, which are as many as its calls
}

// count counts a call and what came of it.
func (s *Server) count(op op, err error) { s.counts.calls[op][resultOf(err)].Add(1) }

// Info is what a server is, and has done.
type Info struct {
	Format  string
	Worker  uint64
	Stats   Stats
	Last    uint64    // time of the last id, ms since 1970
	Mark    time.Time // that no id is later than; zero if none is kept
	Uptime  time.Duration
	Version string
	Origin  Origin
}

// Origin is where a worker came from.
type Origin struct {
	From  string    // "worker_id", "interface eth0", "etcd", ...; empty if nobody tells
	Until time.Time // how far ids go with it, unless that is extended; zero if they go on for good
	Err   error     // what the last attempt to extend that came to
}

// Origin returns where the worker came from.
func (s *Server) Origin() Origin {
	if s.From == nil {
		return Origin{}
	}
	return s.From()
}

// Info returns what the server is, and has done.
func (s *Server) Info() *Info {
	s.count(opInfo, nil)
	last, _ := s.IDs.Last()
	return &Info{
		Format:  s.IDs.Format().Name,
		Worker:  s.IDs.Worker(),
		Stats:   s.Stats(),
		Last:    last,
		Mark:    s.IDs.Mark(),
		Uptime:  time.Since(s.Started),
		Version: s.Version,
		Origin:  s.Origin(),
	}
}
