package flakeserver

import (
	"errors"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// ErrBadArgument is the answer to an argument out of range.
var ErrBadArgument = errors.New("badarg")

// Reply is one answer.
type Reply struct {
	Op   Op
	Base int // as asked for
	ID   flake.ID
	Err  error
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
	if r.Base == 0 {
		return etf.AppendBinary(dst, r.ID[:])
	}
	var digits [128]byte
	text, err := r.ID.AppendText(digits[:0], r.Base)
	if err != nil {
		panic(err) // DecodeRequest let a base through that is none
	}
	return etf.AppendStringExt(dst, text)
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
