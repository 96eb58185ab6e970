// Package flakeserver knows what can be asked of a generator, and answers it.
// Every front door decodes to the same [Request] and encodes the same [Reply],
// and every [Format] of ids has the same calls; this package also holds the door
// for Erlang's callers, as terms.
//
// Start at [Server].
package flakeserver

import "github.com/flake-go/flake/flake"

// Op is what is asked for.
type Op uint8

const (
	OpUnknown   Op = iota // nothing this server knows: answered ok, as the original does
	OpGet                 // the next id
	OpInvalid             // an argument of the wrong type or out of range: {error, badarg}
	OpGetMany             // ids, ascending
	OpGetBinary           // the same, as the octets of all of them
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

// The most ids that one request may ask for.
const (
	MaxMany  = 1 << 16 // get_many and get_binary
	MaxLease = 1 << 20 // lease

	// MaxTicks bounds the time that a request takes: it is for no more ids than
	// there are in so many ticks, if more than MaxInline. Only a generator of less
	// than 1,024 ids a tick has a smaller bound by it than MaxLease.
	MaxTicks = 1024
)

// MaxInline is the most ids that are made while others wait. A request for more
// lets all others go first after each so many.
const MaxInline = 256

// MaxText is the length of the longest text of an id: 128 bits in base 2.
const MaxText = 128

// Bases of a Request besides 2 to 62.
const (
	Octets    = 0  // an id as it is
	Canonical = -1 // the format's own text
)

// Request is one question.
type Request struct {
	Op   Op
	Base int // Octets, Canonical, or 2 to 62

	// N is how many ids: 1 to MaxMany, or of OpLease to MaxLease.
	N int

	// Meta is the metabyte of OpGet, if HasMeta, for a format that takes one.
	Meta    uint8
	HasMeta bool

	// First and Last are ms since 1970: of OpSpan, with First not after Last, and
	// First of OpNotional.
	First, Last uint64

	// Text of OpDecompose is an id, as Parse reads it.
	Text string
}

// valid reports whether all is in its range, as far as that is not the format's
// to say.
func (q *Request) valid() bool {
	if q.Base != Octets && q.Base != Canonical && (q.Base < flake.MinBase || q.Base > flake.MaxBase) {
		return false
	}
	switch q.Op {
	case OpInvalid:
		return false
	case OpGetMany, OpGetBinary:
		return 1 <= q.N && q.N <= MaxMany
	case OpLease:
		return 1 <= q.N && q.N <= MaxLease
	case OpSpan:
		return q.First <= q.Last
	}
	return true
}

// large reports whether others shall not wait until it is answered.
func (q *Request) large() bool { return q.N > MaxInline }
