package flakeserver

import (
	"errors"
	"iter"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// ErrBadArgument is the answer to an argument out of range.
var ErrBadArgument = errors.New("badarg")

// Reply is one answer.
type Reply struct {
	Op     Op
	Base   int // as asked for
	Format Format
	Err    error // then there is nothing else

	ID      Number  // of OpGet, OpNotional; the lowest of OpSpan
	Highest Number  // of OpSpan
	Runs    []Run   // of OpGetMany, OpGetBinary, OpLease; ascending
	Fields  []Field // of OpDecompose
	Info    *Info   // of OpInfo
}

// IDs gives the ids of all Runs, ascending.
func (r *Reply) IDs() iter.Seq[Number] {
	return func(yield func(Number) bool) {
		for _, run := range r.Runs {
			for i := range run.Count {
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
//	{ok, <<Time:64, Worker:48, Sequence:16>>}
//	{ok, "digits"}        a STRING_EXT: to old callers a list would be integers
//	{error, Reason}
//	ok                    to what was not known
func (r *Reply) AppendTerm(dst []byte, caps etf.Caps) []byte {
	if r.Op == OpUnknown {
		return etf.MustAppendAtom(dst, "ok", caps)
	}
	dst = etf.AppendTupleHeader(dst, 2)
	if r.Err != nil {
		dst = etf.MustAppendAtom(dst, "error", caps)
		return etf.MustAppendAtom(dst, reason(r.Err), caps)
	}
	dst = etf.MustAppendAtom(dst, "ok", caps)
	return r.appendIDTerm(dst, r.ID)
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

// reason is the atom that an Erlang caller sees.
func reason(err error) etf.Atom {
	switch {
	case errors.Is(err, ErrBadArgument):
		return "badarg"
	case errors.Is(err, flake.ErrClockBackwards):
		return "clock_running_backwards"
	case errors.Is(err, flake.ErrTimestampNotSaved):
		return "timestamp_not_saved"
	case errors.Is(err, flake.ErrClosed):
		return "shutdown"
	}
	return "system_limit"
}
