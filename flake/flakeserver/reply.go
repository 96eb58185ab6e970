package flakeserver

import (
	"encoding/binary"
	"iter"
	"runtime"

	"github.com/flake-go/flake/node/etf"
)

// Reply is one answer.
type Reply struct {
	Op     Op
	Base   int // as asked for
	Format Format
	Err    error // then there is nothing else

	ID      Number  // of OpGet, OpNotional, OpDecompose; the lowest of OpSpan
	Highest Number  // of OpSpan
	Runs    []Run   // of OpGetMany, OpGetBinary, OpLease; ascending
	Fields  []Field // of OpDecompose
	Info    *Info   // of OpInfo
}

// IDs gives the ids of all Runs, ascending. After each MaxInline others go first.
func (r *Reply) IDs() iter.Seq[Number] {
	return func(yield func(Number) bool) {
		n := 0
		for _, run := range r.Runs {
			for i := range run.Count {
				if n++; n%MaxInline == 0 {
					runtime.Gosched()
				}
				if !yield(run.First.Plus(i)) {
					return
				}
			}
		}
	}
}

// AppendID appends an id as the request had it: as octets, as the format's own
// text, or as digits.
func (r *Reply) AppendID(dst []byte, id Number) []byte {
	switch r.Base {
	case Octets:
		return id.AppendOctets(dst, r.Format.Size())
	case Canonical:
		return r.Format.AppendCanonical(dst, id)
	}
	return id.AppendDigits(dst, r.Base)
}

// AppendTerm appends the reply as an external term:
//
//	OpGet        {ok, Id}
//	OpGetMany    {ok, [Id]}
//	OpGetBinary  {ok, <<Id/binary, ...>>}
//	OpLease      {ok, [{FirstId, Count}]}
//	OpNotional   {ok, Id}
//	OpSpan       {ok, {LowestId, HighestId}}
//	OpDecompose  {ok, [{Field, Value}]}
//	OpInfo       [{Property, Value}]
//	OpUnknown    ok
//	an error     {error, Reason}
//
// An id is a binary, or with a base the string of its digits.
func (r *Reply) AppendTerm(dst []byte, caps etf.Caps) []byte {
	switch {
	case r.Op == OpUnknown:
		return etf.MustAppendAtom(dst, "ok", caps)
	case r.Op == OpInfo && r.Err == nil:
		dst, err := etf.Append(dst, r.Info.term(), caps)
		if err != nil {
			panic(err) // there is nothing in it that a peer may not know
		}
		return dst
	}
	dst = etf.AppendTupleHeader(dst, 2)
	if r.Err != nil {
		dst = etf.MustAppendAtom(dst, "error", caps)
		return etf.MustAppendAtom(dst, results[resultOf(r.Err)], caps)
	}
	dst = etf.MustAppendAtom(dst, "ok", caps)
	switch r.Op {
	case OpGetMany:
		return r.appendList(dst)
	case OpGetBinary:
		return r.appendPacked(dst)
	case OpLease:
		return r.appendRuns(dst)
	case OpSpan:
		dst = etf.AppendTupleHeader(dst, 2)
		return r.appendIDTerm(r.appendIDTerm(dst, r.ID), r.Highest)
	case OpDecompose:
		return appendFields(dst, r.Fields, caps)
	}
	return r.appendIDTerm(dst, r.ID)
}

// appendList appends the ids as a list.
func (r *Reply) appendList(dst []byte) []byte {
	dst = etf.AppendListHeader(dst, r.count())
	for id := range r.IDs() {
		dst = r.appendIDTerm(dst, id)
	}
	return etf.AppendNil(dst)
}

// appendPacked appends the octets of the ids as one binary.
func (r *Reply) appendPacked(dst []byte) []byte {
	size := r.Format.Size()
	dst = binary.BigEndian.AppendUint32(append(dst, byte(etf.BinaryExt)), uint32(size*r.count()))
	for id := range r.IDs() {
		dst = id.AppendOctets(dst, size)
	}
	return dst
}

func (r *Reply) appendRuns(dst []byte) []byte {
	dst = etf.AppendListHeader(dst, len(r.Runs))
	for _, run := range r.Runs {
		dst = r.appendIDTerm(etf.AppendTupleHeader(dst, 2), run.First)
		dst = etf.AppendInt(dst, int64(run.Count))
	}
	return etf.AppendNil(dst)
}

func appendFields(dst []byte, fields []Field, caps etf.Caps) []byte {
	dst = etf.AppendListHeader(dst, len(fields))
	for _, f := range fields {
		dst = etf.MustAppendAtom(etf.AppendTupleHeader(dst, 2), etf.Atom(f.Name), caps)
		dst = etf.AppendUint64(dst, f.Value)
	}
	return etf.AppendNil(dst)
}

// count is how many ids the Runs have.
func (r *Reply) count() (n int) {
	for _, run := range r.Runs {
		n += run.Count
	}
	return n
}

// appendIDTerm appends an id as a binary, or its text as a string: of 1 to 128
// characters, whatever the format and the base.
func (r *Reply) appendIDTerm(dst []byte, id Number) []byte {
	if r.Base == Octets {
		size := r.Format.Size()
		return id.AppendOctets(append(dst, byte(etf.BinaryExt), 0, 0, 0, byte(size)), size)
	}
	dst = append(dst, byte(etf.StringExt), 0, 0)
	start := len(dst)
	dst = r.AppendID(dst, id)
	dst[start-1] = byte(len(dst) - start)
	return dst
}
