package idserver

import (
	"sync/atomic"
	"time"
)

// Kind is a kind of request.
type Kind uint8

// The kinds of requests.
const (
	KindUnknown   Kind = iota // a request that the server does not know, answered ok as in the original
	KindGet                   // the next id
	KindInvalid               // an argument of the wrong type or out of range
	KindGetMany               // ids, ascending
	KindGetBinary             // ids, ascending, as one binary
	KindLease                 // runs of ids
	KindNotional              // the lowest id with a time
	KindSpan                  // the lowest and the highest id from a span of time
	KindDecompose             // the fields of an id
	KindInfo                  // the state and counts of the server
)

var kinds = [...]string{
	"unknown", "get", "invalid", "get_many", "get_binary", "lease", "notional", "span", "decompose", "info",
}

// Stats are counts since the server was made.
type Stats struct {
	IDs      uint64      // ids handed out or leased
	Waits    uint64      // waits for the next tick, after all ids of the current tick were used up
	Refusals uint64      // calls answered with an error
	Calls    []CallCount // calls by kind and result, without counts of 0
}

// CallCount is the number of calls of one kind with the same result.
type CallCount struct {
	Kind   string // "get", "lease", ...
	Result string // "ok", or the error's Reason
	Calls  uint64
}

// Stats returns the current counts.
func (s *Server) Stats() (all Stats) {
	for kind, name := range kinds {
		for i, result := range Results {
			n := s.counts.calls[kind][i].Load()
			if n == 0 {
				continue
			}
			all.Calls = append(all.Calls, CallCount{name, result.Reason, n})
			if result.Err != nil {
				all.Refusals += n
			}
		}
	}
	all.IDs = s.counts.calls[KindGet][0].Load() + s.counts.ids.Load()
	all.Waits = s.IDs.Waits()
	return all
}

// counts are shared by all callers. A call for one id adds to only one of these words.
type counts struct {
	calls [len(kinds)][len(Results)]atomic.Uint64
	ids   atomic.Uint64 // not counting ids from KindGet, which returns one in each call
}

// Count counts a request by its kind and its result, err, and returns err. The methods that answer
// requests call it. No method answers KindUnknown and KindInvalid: for these, call Count itself.
func (s *Server) Count(kind Kind, err error) error {
	s.counts.calls[kind][resultOf(err)].Add(1)
	return err
}

// Info is the state and the counts of a server. Times are in ms since 1970, and durations in ms.
// Erlang callers get properties with the same names as the JSON fields, and the version.
type Info struct {
	Format      string `json:"format"`
	Worker      uint64 `json:"worker"`
	WorkerFrom  string `json:"worker_from,omitempty"`
	WorkerUntil int64  `json:"worker_until,omitempty"` // the worker's mark, which no id passes; 0 if there is none
	WorkerLeft  int64  `json:"worker_left,omitempty"`  // the time left until then
	WorkerError string `json:"worker_error,omitempty"` // the error of the last attempt to extend that mark
	IDs         uint64 `json:"ids"`
	Waits       uint64 `json:"waits"`
	Refusals    uint64 `json:"refusals"`
	Last        uint64 `json:"last"`           // the time of the last id
	Mark        int64  `json:"mark,omitempty"` // no id is later; 0 if no mark is kept
	Uptime      int64  `json:"uptime"`
}

// Origin says where a worker came from, and how long it can be used.
type Origin struct {
	From  string    // "worker_id", "interface eth0", "store", ...; empty if unknown
	Until time.Time // the worker's mark, which no id passes; the zero Time if there is none
	Err   error     // the error of the last attempt to extend that mark
}

// Origin returns where the worker came from.
func (s *Server) Origin() Origin {
	if s.From == nil {
		return Origin{}
	}
	return s.From()
}

// Info returns the state and the counts of the server.
func (s *Server) Info() Info {
	s.Count(KindInfo, nil)
	stats := s.Stats()
	i := Info{
		Format: s.IDs.Format().Name, Worker: s.IDs.Worker(),
		IDs: stats.IDs, Waits: stats.Waits, Refusals: stats.Refusals,
		Uptime: time.Since(s.Started).Milliseconds(),
	}
	i.Last, _ = s.IDs.Last()
	origin := s.Origin() // read after Last, so that Last is not above Until
	i.WorkerFrom = origin.From
	if mark := s.IDs.Mark(); !mark.IsZero() {
		i.Mark = mark.UnixMilli()
	}
	if !origin.Until.IsZero() {
		i.WorkerUntil, i.WorkerLeft = origin.Until.UnixMilli(), time.Until(origin.Until).Milliseconds()
	}
	if origin.Err != nil {
		i.WorkerError = origin.Err.Error()
	}
	return i
}
