package client

import (
	"errors"
	"fmt"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

const (
	// maxFrame limits the size of a frame from the node; 65,536 ids in base 2 take half of this.
	maxFrame = 16 << 20

	readBuffer = 64 << 10
)

// caps lists the external forms of terms that a caller sends. OTP 23 and later support them.
var caps = etf.AllCaps

// tick is an empty frame.
var tick = make([]byte, wire.HeaderSize)

// appendCall appends a frame that sends {'$gen_call', {Self, Tag}, Request} to a registered
// process, whose name must be an atom that etf accepts. OTP uses a reference as Tag, but any term is
// allowed.
func appendCall(dst []byte, self etf.Pid, name etf.Atom, tag uint64, request etf.Term) ([]byte, error) {
	b := etf.AppendInt(etf.AppendTupleHeader(wire.Open(dst), 4), int64(wire.OpRegSend))
	b = etf.MustAppendAtom(append(b, self...), "", caps)
	b = etf.MustAppendAtom(b, name, caps)
	b = etf.AppendTupleHeader(append(b, etf.VersionMagic), 3)
	b = etf.MustAppendAtom(b, "$gen_call", caps)
	b = append(etf.AppendTupleHeader(b, 2), self...)
	b, err := etf.Append(etf.AppendUint64(b, tag), request, caps)
	if err != nil {
		return dst, err
	}
	wire.Close(b, len(dst))
	return b, nil
}

// signal is an answer to a call, or a message that a monitored process has ended.
type signal struct {
	tag    uint64
	answer []byte // one term, or nil
	ref    []byte // the monitor of the process that ended, or nil
	reason []byte // the exit reason, one term
}

// decode decodes a frame. It returns an empty signal for a frame that callers do not need. The
// slices of a signal are parts of the frame.
func decode(frame []byte) (s signal, err error) {
	if len(frame) == 0 {
		return s, nil
	}
	if frame[0] != wire.PassThrough {
		return s, fmt.Errorf("frame begins with %d, not %d: distribution headers are not supported",
			frame[0], wire.PassThrough)
	}
	var m wire.Message
	err = m.Decode(frame[1:])
	switch {
	case err != nil:
	case m.Op == wire.OpSend && m.N == 2:
		if m.Payload == nil {
			return s, errors.New("send without a message")
		}
		r := etf.NewReader(m.Payload)
		r.Tuple()
		if tag, answer := r.Uint64(), r.Raw(); r.Finish() == nil { // {Tag, Answer}; no other message is expected
			s.tag, s.answer = tag, answer
		}
	case m.Op == wire.OpMonitorPExit:
		s.ref, s.reason = m.Args[2], m.Args[3]
	}
	return s, err
}
