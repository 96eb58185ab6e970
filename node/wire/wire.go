// Package wire encodes and decodes the frames that two connected nodes send each other,
// and the control messages in them. It implements the chapter "Protocol between Connected
// Nodes" of https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html, without
// distribution headers and fragments.
//
// A frame consists of its length in four bytes, [PassThrough], and one or two external
// terms, each with a version byte: the control message, and a payload. An empty frame is
// a tick.
package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/flake-go/flake/node/etf"
)

const (
	// HeaderSize is the size of the length before each frame.
	HeaderSize = 4

	// PassThrough begins every frame that is not a tick.
	PassThrough = 112
)

// Open appends the start of a frame. The caller must append a control message and may then
// append a version byte and a payload.
func Open(dst []byte) []byte { return append(dst, 0, 0, 0, 0, PassThrough, etf.VersionMagic) }

// Close sets the length of the frame from start to the end of b.
func Close(b []byte, start int) {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-HeaderSize))
}

// Append appends the frame of a control message and at most one payload.
func Append(dst []byte, caps etf.Caps, control etf.Term, payload ...etf.Term) ([]byte, error) {
	b, err := etf.Append(Open(dst), control, caps)
	for _, t := range payload {
		if err == nil {
			b, err = etf.Append(append(b, etf.VersionMagic), t, caps)
		}
	}
	if err != nil {
		return dst, err
	}
	Close(b, len(dst))
	return b, nil
}

// Read returns the next frame without its length prefix. A length above limit is an error. The
// frame is valid until the next read from r.
func Read(r *bufio.Reader, limit int) ([]byte, error) {
	header, err := r.Peek(HeaderSize)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(header))
	if n > limit {
		return nil, fmt.Errorf("frame of %d bytes, at most %d allowed", n, limit)
	}
	r.Discard(HeaderSize)
	if n <= r.Size() {
		frame, err := r.Peek(n)
		r.Discard(len(frame))
		return frame, err
	}
	frame := make([]byte, n)
	_, err = io.ReadFull(r, frame)
	return frame, err
}

// MaxArguments bounds the elements after the operation of a control message.
const MaxArguments = 6

// Message is a decoded control message and its payload.
type Message struct {
	Op      Op
	Args    [MaxArguments][]byte // the elements after the operation, each a term
	N       int                  // number of elements in Args
	Payload []byte               // the bytes after the control message, unchecked, or nil
}

// Decode reads a frame without its pass-through byte. The fields are slices of the frame.
func (m *Message) Decode(frame []byte) error {
	m.Payload = nil
	r := etf.NewReader(frame)
	r.Version()
	m.N = r.Tuple() - 1
	m.Op = Op(r.Int())
	if err := r.Err(); err != nil {
		return err
	}
	if m.N < 0 || m.N > MaxArguments {
		return fmt.Errorf("control message %d has %d elements: must have 1 to %d", m.Op, m.N+1, MaxArguments+1)
	}
	for i := range m.N {
		m.Args[i] = r.Raw()
	}
	if len(r.Rest()) == 0 {
		return r.Finish()
	}
	r.Version()
	m.Payload = r.Rest()
	return r.Err()
}

// Op is the operation of a control message, its first element.
type Op int64

// The control messages of the chapter that code names. Each comment lists the elements of the tuple
// after the operation and, after a +, the second term. The _TT forms also contain a trace token.
const (
	OpLink           Op = 1  // FromPid, ToPid
	OpSend           Op = 2  // Unused, ToPid + message
	OpExit           Op = 3  // FromPid, ToPid, Reason
	OpUnlink         Op = 4  // FromPid, ToPid; before UNLINK_ID
	OpNodeLink       Op = 5  //
	OpRegSend        Op = 6  // FromPid, Unused, ToName + message
	OpGroupLeader    Op = 7  // FromPid, ToPid
	OpExit2          Op = 8  // FromPid, ToPid, Reason
	OpSendTT         Op = 12 // Unused, ToPid, TraceToken + message
	OpExitTT         Op = 13 // FromPid, ToPid, TraceToken, Reason
	OpRegSendTT      Op = 16 // FromPid, Unused, ToName, TraceToken + message
	OpExit2TT        Op = 18 // FromPid, ToPid, TraceToken, Reason
	OpMonitorP       Op = 19 // FromPid, ToProc, Ref
	OpDemonitorP     Op = 20 // FromPid, ToProc, Ref
	OpMonitorPExit   Op = 21 // FromProc, ToPid, Ref, Reason
	OpSendSender     Op = 22 // FromPid, ToPid + message
	OpSendSenderTT   Op = 23 // FromPid, ToPid, TraceToken + message
	OpPayloadExit    Op = 24 // FromPid, ToPid + reason
	OpSpawnRequest   Op = 29 // ReqId, From, GroupLeader, {M,F,A}, OptList + arguments
	OpSpawnRequestTT Op = 30 // ReqId, From, GroupLeader, {M,F,A}, OptList, TraceToken + arguments
	OpSpawnReply     Op = 31 // ReqId, To, Flags, Result
	OpAliasSend      Op = 33 // FromPid, Alias + message
	OpAliasSendTT    Op = 34 // FromPid, Alias, TraceToken + message
	OpUnlinkID       Op = 35 // Id, FromPid, ToPid
	OpUnlinkIDAck    Op = 36 // Id, FromPid, ToPid
)
