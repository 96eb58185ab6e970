// Package flakeserver knows what can be asked of a generator, and answers it.
// Every front door decodes to the same [Request] and encodes the same [Reply],
// and every [Format] of ids has the same calls; this package also holds the door
// for Erlang's callers, as terms.
//
// Start at [Server].
package flakeserver

import (
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// Op is what is asked for.
type Op uint8

const (
	OpUnknown   Op = iota // nothing this server knows: answered ok, as the original does
	OpGet                 // the next id
	OpInvalid             // an argument out of range: answered {error, badarg}
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
)

// Bases of a Request besides 2 to 62.
const (
	Octets    = 0  // an id as it is
	Canonical = -1 // the format's own text
)

// Request is one question. Serve checks the ranges.
type Request struct {
	Op   Op
	Base int // Octets, Canonical, or 2 to 62

	// N is how many ids: 1 to MaxMany, or of OpLease to MaxLease.
	N int

	// Meta is the metabyte of OpGet, if HasMeta, for a format that takes one.
	Meta    uint8
	HasMeta bool

	// First and Last are ms since 1970: of OpSpan, and First of OpNotional.
	First, Last uint64

	// Text of OpDecompose is an id: digits in the Base; with Canonical any of the
	// format's own texts; with Octets the id itself, or if it is not of an id's
	// size, as Canonical.
	Text string
}

// DecodeRequest reads a request from an external term:
//
//	get            OpGet
//	{get, Base}    OpGet with a Base from 2 to 62, else OpInvalid
//	anything else  OpUnknown
func DecodeRequest(term []byte) Request {
	r := etf.NewReader(term)
	if r.Peek() != etf.SmallTupleExt {
		if string(r.Atom()) == "get" && r.Finish() == nil {
			return Request{Op: OpGet}
		}
		return Request{}
	}
	if r.Tuple() != 2 || string(r.Atom()) != "get" {
		return Request{}
	}
	base := r.Int()
	if r.Finish() != nil || base < flake.MinBase || base > flake.MaxBase {
		return Request{Op: OpInvalid}
	}
	return Request{Op: OpGet, Base: int(base)}
}
