package flakeserver

import (
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// request is a call of an Erlang caller, taken apart.
type request struct {
	op          Op
	base        int    // of an id in the reply, or of the text
	n           int    // of ids
	meta        uint8  // of OpGet, if hasMeta
	hasMeta     bool   //
	first, last uint64 // ms since 1970
	text        string // of OpDecompose
}

// decode reads an external term into an empty request:
//
//	get, {get, Base}, {get, meta, 0..255}              OpGet
//	{get_many, N}, {get_many, N, Base}                 OpGetMany
//	{get_binary, N}                                    OpGetBinary
//	{lease, N}                                         OpLease
//	{notional, Ms}                                     OpNotional
//	{notional, FromMs, ToMs}                           OpSpan
//	{decompose, IdOrText}, {decompose, Text, Base}     OpDecompose
//	info                                               OpInfo
//	one of these with an argument that is out of
//	range or of another type                           OpInvalid
//	anything else                                      OpUnknown
//
// A Base is 2 to 62 or canonical. A text is a string or a binary; a binary of an
// id's size is that id.
func (q *request) decode(term []byte) {
	r := etf.NewReader(term)
	if r.Peek() == etf.SmallTupleExt {
		q.decodeTuple(&r)
		if q.op != OpUnknown && (r.Finish() != nil || !q.valid()) {
			*q = request{op: OpInvalid}
		}
		return
	}
	word := r.Atom()
	switch {
	case r.Finish() != nil:
	case string(word) == "get":
		q.op = OpGet
	case string(word) == "info":
		q.op = OpInfo
	}
}

// valid reports whether all is in its range, as far as that is not the format's
// to say.
func (q *request) valid() bool {
	switch q.op {
	case OpGetMany, OpGetBinary:
		return q.base != noBase && 1 <= q.n && q.n <= MaxMany
	case OpLease:
		return 1 <= q.n && q.n <= MaxLease
	case OpSpan:
		return q.first <= q.last
	}
	return q.base != noBase
}

func (q *request) decodeTuple(r *etf.Reader) {
	args := r.Tuple() - 1
	switch word := string(r.Atom()); {
	case word == "get" && args == 1:
		q.op, q.base = OpGet, readBase(r)
	case word == "get" && args == 2:
		if string(r.Atom()) == "meta" {
			q.op, q.hasMeta = OpGet, true
			q.readMeta(r)
		}
	case word == "get_many" && (args == 1 || args == 2):
		q.op, q.n = OpGetMany, readCount(r)
		if args == 2 {
			q.base = readBase(r)
		}
	case word == "get_binary" && args == 1:
		q.op, q.n = OpGetBinary, readCount(r)
	case word == "lease" && args == 1:
		q.op, q.n = OpLease, readCount(r)
	case word == "notional" && args == 1:
		q.op, q.first = OpNotional, r.Uint64()
	case word == "notional" && args == 2:
		q.op, q.first, q.last = OpSpan, r.Uint64(), r.Uint64()
	case word == "decompose" && (args == 1 || args == 2):
		q.op = OpDecompose
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

// readCount gives 0, or one too many, for what no request may ask for.
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
