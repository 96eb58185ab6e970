// Package flakeserver knows what can be asked of a generator, and answers it.
// Every front door decodes to the same [Request] and encodes the same [Reply];
// this package also holds the door for Erlang's callers, as terms.
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
	OpUnknown Op = iota // nothing this server knows: answered ok, as the original does
	OpGet               // the next id, as octets or as text in a base
	OpInvalid           // an argument out of range: answered {error, badarg}
)

// Request is one question.
type Request struct {
	Op   Op
	Base int // of OpGet: 2 to 62, or 0 for octets
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
