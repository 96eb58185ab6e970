package flakeserver

import "sync/atomic"

// Op is a kind of call.
type Op uint8

const (
	OpUnknown   Op = iota // nothing that is known: answered ok, as the original does
	OpGet                 // the next id
	OpInvalid             // an argument of the wrong type or out of range
	OpGetMany             // ids, ascending
	OpGetBinary           // the same, as the bytes of all of them
	OpLease               // runs of ids
	OpNotional            // the lowest id of a time
	OpSpan                // the lowest and the highest id of a span of time
	OpDecompose           // the fields of an id
	OpInfo                // what the server is, and has done

	ops = 10
)

var opNames = [ops]string{
	"unknown", "get", "invalid", "get_many", "get_binary", "lease", "notional", "span", "decompose", "info",
}

func (o Op) String() string { return opNames[o] }

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

// Count counts a call and what came of it. Those of the Server's methods it counts itself.
func (s *Server) Count(op Op, err error) { s.counts.calls[op][resultOf(err)].Add(1) }
