package client

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/flake-go/flake/node/etf"
)

// The control messages of a caller, of the chapter "Protocol between Connected
// Nodes" of the distribution protocol. Each is a tuple; the elements after the
// operation stand beside it.
const (
	opSend         = 2  // Unused, ToPid + message
	opRegSend      = 6  // FromPid, Unused, ToName + message
	opMonitorP     = 19 // FromPid, ToProc, Ref
	opMonitorPExit = 21 // FromProc, ToPid, Ref, Reason
)

const (
	frameHeader = 4   // the length before each frame
	passThrough = 112 // begins each that is not a tick

	// maxFrame bounds the octets of a frame from the node: 65,536 ids in base 2
	// are half of it.
	maxFrame = 16 << 20

	readBuffer = 64 << 10
)

// caps are those of every node from OTP 23 on, as far as a caller's terms go.
var caps = etf.AllCaps

// tick is a frame of no octets.
var tick = make([]byte, frameHeader)

// appendFrame appends a control message, and the message that fill appends.
func appendFrame(dst []byte, fill func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	b, err := fill(append(dst, 0, 0, 0, 0, passThrough, etf.VersionMagic))
	if err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-frameHeader))
	return b, nil
}

// appendMonitor appends the frame that sets a monitor on a registered process.
func appendMonitor(dst []byte, self etf.Pid, name etf.Atom, ref etf.Ref) ([]byte, error) {
	return appendFrame(dst, func(b []byte) ([]byte, error) {
		return etf.Append(b, etf.Tuple{int64(opMonitorP), self, name, ref}, caps)
	})
}

// appendCall appends the frame of {'$gen_call', {Self, Tag}, Request} to a
// registered process, whose name appendMonitor took. A reference is what OTP has
// as Tag; any term serves.
func appendCall(dst []byte, self etf.Pid, name etf.Atom, tag uint64, request etf.Term) ([]byte, error) {
	return appendFrame(dst, func(b []byte) ([]byte, error) {
		b = etf.AppendInt(etf.AppendTupleHeader(b, 4), opRegSend)
		b = etf.MustAppendAtom(append(b, self...), "", caps)
		b = etf.MustAppendAtom(b, name, caps)
		b = etf.AppendTupleHeader(append(b, etf.VersionMagic), 3)
		b = etf.MustAppendAtom(b, "$gen_call", caps)
		b = append(etf.AppendTupleHeader(b, 2), self...)
		return etf.Append(etf.AppendUint64(b, tag), request, caps)
	})
}

// signal is what a caller waits for: an answer, or the end of who should give it.
type signal struct {
	tag    uint64
	answer []byte // one term, or nil
	ref    []byte // of the monitor that went off, or nil
	reason []byte // why, one term
}

// decode reads a frame. What is of no use to a caller gives a signal of nothing.
// All is of the frame.
func decode(frame []byte) (s signal, err error) {
	if len(frame) == 0 {
		return s, nil
	}
	if frame[0] != passThrough {
		return s, fmt.Errorf("frame begins with %d, want %d: a distribution header was not agreed on", frame[0], passThrough)
	}
	r := etf.NewReader(frame[1:])
	r.Version()
	arity := r.Tuple()
	switch op := r.Int(); {
	case op == opSend && arity == 3:
		r.Raw()
		r.Raw()
		r.Version()
		return decodeMessage(r.Rest(), r.Err())
	case op == opMonitorPExit && arity == 5:
		r.Raw()
		r.Raw()
		s.ref, s.reason = r.Raw(), r.Raw()
		return s, r.Finish()
	}
	return s, r.Err()
}

// decodeMessage reads {Tag, Answer}. Any other message is dropped.
func decodeMessage(message []byte, err error) (s signal, _ error) {
	r := etf.NewReader(message)
	r.Tuple()
	tag, answer := r.Uint64(), r.Raw()
	if r.Finish() == nil {
		s.tag, s.answer = tag, answer
	}
	return s, err
}

// readFrame gives the next frame without its length, valid until the next read.
func readFrame(r *bufio.Reader) ([]byte, error) {
	header, err := r.Peek(frameHeader)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(header))
	if n > maxFrame {
		return nil, fmt.Errorf("frame of %d octets, want at most %d", n, maxFrame)
	}
	r.Discard(frameHeader)
	if n <= r.Size() {
		frame, err := r.Peek(n)
		r.Discard(len(frame))
		return frame, err
	}
	frame := make([]byte, n)
	_, err = io.ReadFull(r, frame)
	return frame, err
}
