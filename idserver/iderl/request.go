package iderl

import (
	"math"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// request is a decoded call from an Erlang node.
type request struct {
	kind        idserver.Kind
	base        int // the base of ids in the reply, or of text
	n           int // the number of ids
	meta        idserver.Meta
	first, last uint64 // in ms since 1970
	text        string // the text of an id
}

// decode decodes an external term into q, which must be empty. An argument out of range or of
// the wrong type makes q invalid.
func (q *request) decode(term []byte) {
	r := etf.NewReader(term)
	if r.Peek() == etf.SmallTupleExt {
		q.decodeTuple(&r)
		if q.kind == idserver.KindInvalid || q.kind != idserver.KindUnknown && r.Finish() != nil {
			*q = request{kind: idserver.KindInvalid}
		}
		return
	}
	word := r.Atom()
	switch {
	case r.Finish() != nil:
	case string(word) == "get":
		q.kind = idserver.KindGet
	case string(word) == "info":
		q.kind = idserver.KindInfo
	}
}

func (q *request) decodeTuple(r *etf.Reader) {
	args := r.Tuple() - 1
	switch word := string(r.Atom()); {
	case word == "get" && args == 1:
		q.kind = idserver.KindGet
		q.readBase(r)
	case word == "get" && args == 2:
		if string(r.Atom()) == "meta" {
			q.kind = idserver.KindGet
			q.readMeta(r)
		}
	case word == "get_many" && (args == 1 || args == 2):
		q.kind = idserver.KindGetMany
		q.readCount(r, idserver.MaxMany)
		if args == 2 {
			q.readBase(r)
		}
	case word == "get_binary" && args == 1:
		q.kind = idserver.KindGetBinary
		q.readCount(r, idserver.MaxMany)
	case word == "lease" && args == 1:
		q.kind = idserver.KindLease
		q.readCount(r, idserver.MaxLease)
	case word == "lease" && args == 3:
		if string(r.Atom()) == "meta" {
			q.kind = idserver.KindLease
			q.readMeta(r)
			q.readCount(r, idserver.MaxLease)
		}
	case word == "notional" && args == 1:
		q.kind, q.first = idserver.KindNotional, r.Uint64()
	case word == "notional" && args == 2:
		q.kind, q.first, q.last = idserver.KindSpan, r.Uint64(), r.Uint64()
	case word == "decompose" && (args == 1 || args == 2):
		q.kind = idserver.KindDecompose
		q.readText(r)
		if args == 2 {
			q.readBase(r)
		}
	}
}

// readBase reads an integer from 2 to 62, or the name of a base.
func (q *request) readBase(r *etf.Reader) {
	ok := false
	if r.Peek().IsAtom() {
		q.base, ok = formats.BaseOf(string(r.Atom()))
	} else {
		q.base, ok = digits(r.Int())
	}
	if !ok {
		q.kind = idserver.KindInvalid
	}
}

// digits returns n as a base, and whether it is a valid one.
func digits(n int64) (base int, ok bool) { return int(n), flake.MinBase <= n && n <= flake.MaxBase }

// readCount reads an integer from 1 to most.
func (q *request) readCount(r *etf.Reader, most int64) {
	n := r.Int()
	if n < 1 || n > most {
		q.kind = idserver.KindInvalid
	}
	q.n = int(n)
}

func (q *request) readMeta(r *etf.Reader) {
	n := r.Uint64()
	if n > math.MaxUint8 {
		q.kind = idserver.KindInvalid
	}
	q.meta = idserver.Meta{Byte: uint8(n), Given: true}
}

// readText reads the id to decompose: a binary, or a string, which never holds an id's bytes.
func (q *request) readText(r *etf.Reader) {
	var text []byte
	if r.Peek() == etf.BinaryExt {
		text = r.Binary()
	} else {
		q.base, text = formats.Canonical, r.StringExt()
	}
	if len(text) <= formats.MaxText { // a longer text counts as empty, which is not an id
		q.text = string(text)
	}
}
