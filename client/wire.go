package client

import (
	"errors"
	"fmt"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

const (
	// maxFrame bounds the bytes of a frame from the node; 65,536 ids in base 2 take
	// half of it.
	maxFrame = 16 << 20

	readBuffer = 64 << 10
)

// caps are those of every node from OTP 23 on, as far as a caller's terms need.
var caps = etf.AllCaps

// tick is an empty frame.
var tick = make([]byte, wire.HeaderSize)

// appendMonitor appends a frame that sets a monitor on a registered process.
func appendMonitor(dst []byte, self etf.Pid, name etf.Atom, ref etf.Ref) ([]byte, error) {
	return wire.Append(dst, caps, etf.Tuple{int64(wire.OpMonitorP), self, name, ref})
}

// appendCall appends the frame of {'$gen_call', {Self, Tag}, Request} to a registered
// process, whose name appendMonitor accepted. OTP uses a reference as Tag; any term
// will do.
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

// signal is what a caller waits for: an answer, or the end of the process.
type signal struct {
	tag    uint64
	answer []byte // one term, or nil
	ref    []byte // of the monitor that fired, or nil
	reason []byte // why, one term
}

// decode reads a frame. What no caller needs becomes an empty signal. Its slices are
// of the frame.
func decode(frame []byte) (s signal, err error) {
	if len(frame) == 0 {
		return s, nil
	}
	if frame[0] != wire.PassThrough {
		return s, fmt.Errorf("frame begins with %d, want %d: a distribution header was not agreed on", frame[0], wire.PassThrough)
	}
	var m wire.Message
	err = m.Decode(frame[1:])
	switch {
	case err != nil:
	case m.Op == wire.OpSend && m.N == 2:
		if m.Payload == nil {
			return s, errors.New("send without a message")
		}
		s.tag, s.answer = decodeMessage(m.Payload)
	case m.Op == wire.OpMonitorPExit && m.N == 4:
		s.ref, s.reason = m.Args[2], m.Args[3]
	}
	return s, err
}

// decodeMessage reads {Tag, Answer}. Any other message is dropped.
func decodeMessage(message []byte) (tag uint64, answer []byte) {
	r := etf.NewReader(message)
	r.Tuple()
	tag, answer = r.Uint64(), r.Raw()
	if r.Finish() != nil {
		return 0, nil
	}
	return tag, answer
}
