package idserver

import (
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// request is a call of an Erlang caller, taken apart.
type request struct {
	op          op
	base        int   // of an id in the reply, or of the text
	n           int   // of ids
	meta        uint8 // of opGet, if hasMeta
	hasMeta     bool
	first, last uint64 // ms since 1970
	text        string // of opDecompose
}

// decode reads an external term into an empty request. One with an argument that is out
// of range or of another type is opInvalid.
func (q *request) decode(term []byte) {
	r := etf.NewReader(term)
	if r.Peek() == etf.SmallTupleExt {
		q.decodeTuple(&r)
		if q.op != opUnknown && (r.Finish() != nil || !q.valid()) {
			*q = request{op: opInvalid}
		}
		return
	}
	word := r.Atom()
	switch {
	case r.Finish() != nil:
	case string(word) == "get":
		q.op = opGet
	case string(word) == "info":
		q.op = opInfo
	}
}

// valid reports whether all is in its range, as far as that is not the format's
// to say.
func (q *request) valid() bool {
	switch q.op {
	case opGetMany, opGetBinary:
		return q.base != noBase && 1 <= q.n && q.n <= MaxMany
	case opLease:
		return 1 <= q.n && q.n <= MaxLease
	case opSpan:
		return q.first <= q.last
	}
	return q.base != noBase
}

func (q *request) decodeTuple(r *etf.Reader) {
	args := r.Tuple() - 1
	switch word := string(r.Atom()); {
	case word == "get" && args == 1:
		q.op, q.base = opGet, readBase(r)
	case word == "get" && args == 2:
		if string(r.Atom()) == "meta" {
			q.op, q.hasMeta = opGet, true
			q.readMeta(r)
		}
	case word == "get_many" && (args == 1 || args == 2):
		q.op, q.n = opGetMany, readCount(r)
		if args == 2 {
			q.base = readBase(r)
		}
	case word == "get_binary" && args == 1:
		q.op, q.n = opGetBinary, readCount(r)
	case word == "lease" && args == 1:
		q.op, q.n = opLease, readCount(r)
	case word == "notional" && args == 1:
		q.op, q.first = opNotional, r.Uint64()
	case word == "notional" && args == 2:
		q.op, q.first, q.last = opSpan, r.Uint64(), r.Uint64()
	case word == "decompose" && (args == 1 || args == 2):
		q.op = opDecompose
		q.readText(r)
		if args == 2 {
			q.base = readBase(r)
		}
	}
}

// noBase is none, and makes a request invalid.
const noBase = math.MinInt8

func readBase(r *etf.Reader) int {
	if r.Peek().IsAtom() {
		if string(r.Atom()) == "canonical" {
			return Canonical
		}
		return noBase
	}
	if base := r.Int(); base >= flake.MinBase && base <= flake.MaxBase {
		return int(base)
	}
	return noBase
}

// readCount returns 0, or one too many, for what no request may ask for.
func readCount(r *etf.Reader) int { return int(max(0, min(r.Int(), MaxLease+1))) }

func (q *request) readMeta(r *etf.Reader) {
	n := r.Uint64()
	if n > math.MaxUint8 {
		q.base = noBase
	}
	q.meta = uint8(n)
}

// readText reads the id that is to be taken apart. A string is a text for sure.
func (q *request) readText(r *etf.Reader) {
	var text []byte
	if r.Peek() == etf.BinaryExt {
		text = r.Binary()
	} else {
		q.base, text = Canonical, r.StringExt()
	}
	if len(text) <= MaxText { // else it is none, as an empty one
		q.text = string(text)
	}
}
