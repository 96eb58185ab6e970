package flakeserver

import (
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// DecodeRequest reads a request from an external term:
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
func DecodeRequest(term []byte) (q Request) {
	q.decode(term)
	return q
}

// decode is DecodeRequest into an empty request.
func (q *Request) decode(term []byte) {
	r := etf.NewReader(term)
	if r.Peek() == etf.SmallTupleExt {
		q.decodeTuple(&r)
		if q.Op != OpUnknown && (r.Finish() != nil || !q.valid()) {
			*q = Request{Op: OpInvalid}
		}
		return
	}
	word := r.Atom()
	switch {
	case r.Finish() != nil:
	case string(word) == "get":
		q.Op = OpGet
	case string(word) == "info":
		q.Op = OpInfo
	}
}

func (q *Request) decodeTuple(r *etf.Reader) {
	args := r.Tuple() - 1
	switch word := string(r.Atom()); {
	case word == "get" && args == 1:
		q.Op, q.Base = OpGet, readBase(r)
	case word == "get" && args == 2:
		if string(r.Atom()) == "meta" {
			q.Op, q.HasMeta = OpGet, true
			q.readMeta(r)
		}
	case word == "get_many" && (args == 1 || args == 2):
		q.Op, q.N = OpGetMany, readCount(r)
		if args == 2 {
			q.Base = readBase(r)
		}
	case word == "get_binary" && args == 1:
		q.Op, q.N = OpGetBinary, readCount(r)
	case word == "lease" && args == 1:
		q.Op, q.N = OpLease, readCount(r)
	case word == "notional" && args == 1:
		q.Op, q.First = OpNotional, r.Uint64()
	case word == "notional" && args == 2:
		q.Op, q.First, q.Last = OpSpan, r.Uint64(), r.Uint64()
	case word == "decompose" && (args == 1 || args == 2):
		q.Op = OpDecompose
		q.readText(r)
		if args == 2 {
			q.Base = readBase(r)
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
	if base := r.Int(); base >= flake.MinBase {
		return int(min(base, flake.MaxBase+1)) // which is none
	}
	return noBase
}

// readCount gives 0, or one too many, for what no request may ask for.
func readCount(r *etf.Reader) int { return int(max(0, min(r.Int(), MaxLease+1))) }

func (q *Request) readMeta(r *etf.Reader) {
	n := r.Uint64()
	if n > math.MaxUint8 {
		q.Base = noBase
	}
	q.Meta = uint8(n)
}

// readText reads the id that is to be taken apart. A string is a text for sure.
func (q *Request) readText(r *etf.Reader) {
	var text []byte
	if r.Peek() == etf.BinaryExt {
		text = r.Binary()
	} else {
		q.Base, text = Canonical, r.StringExt()
	}
	if len(text) <= MaxText { // else it is none, as an empty one
		q.Text = string(text)
	}
}
