package dist

import (
	"encoding/binary"
	"io"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Stream is a connection for a program that is no node: it calls, and waits for
// answers. One goroutine may send while another receives.
type Stream struct {
	rw   io.ReadWriter
	in   frames
	caps etf.Caps
	buf  []byte
}

// NewStream gives the stream over rw, whose handshake is done.
func NewStream(rw io.ReadWriter, peer handshake.Peer) *Stream {
	return &Stream{rw: rw, in: newFrames(rw, nil), caps: capsOf(peer.Flags)}
}

// Signal is a control message from the peer that a caller waits for.
type Signal struct {
	// Down is whether a monitored process has ended, with the Reason.
	Down   bool
	Ref    etf.Ref
	Reason etf.Term
	// Message is what a process was sent otherwise.
	Message etf.Term
}

// Receive waits for the next signal that is of use to a caller.
func (s *Stream) Receive() (Signal, error) {
	for {
		frame, ok, err := s.in.next()
		switch {
		case err != nil:
			return Signal{}, err
		case !ok:
			if err := s.in.fill(); err != nil {
				return Signal{}, err
			}
		case len(frame) == 0: // a tick; our calls are too short to need any
		case frame[0] != passThrough:
			return Signal{}, errPassThrough
		default:
			signal, known, err := decodeSignal(frame[1:])
			if known || err != nil {
				return signal, err
			}
		}
	}
}

func decodeSignal(frame []byte) (signal Signal, known bool, err error) {
	var m control
	if err := m.decode(frame); err != nil {
		return signal, false, err
	}
	switch {
	case (m.op == opSend || m.op == opAliasSend) && m.message != nil:
		signal.Message, err = etf.Decode(m.message)
		return signal, true, err
	case m.op == opMonitorPExit && m.n == 4:
		signal.Down, signal.Ref = true, etf.Ref(m.args[2])
		signal.Reason, err = etf.Decode(m.args[3])
		return signal, true, err
	}
	return signal, false, nil
}

// Monitor sets a monitor on a registered process of the peer.
func (s *Stream) Monitor(from etf.Pid, name etf.Atom, ref etf.Ref) error {
	return s.write(etf.Tuple{int64(opMonitorP), from, name, ref}, nil)
}

// Demonitor takes it back.
func (s *Stream) Demonitor(from etf.Pid, name etf.Atom, ref etf.Ref) error {
	return s.write(etf.Tuple{int64(opDemonitorP), from, name, ref}, nil)
}

// RegSend sends a message to a registered process of the peer.
func (s *Stream) RegSend(from etf.Pid, name etf.Atom, message etf.Term) error {
	return s.write(etf.Tuple{int64(opRegSend), from, etf.Atom(""), name}, message)
}

func (s *Stream) write(control, message etf.Term) (err error) {
	b := append(s.buf[:0], 0, 0, 0, 0, passThrough, etf.VersionMagic)
	if b, err = etf.Append(b, control, s.caps); err != nil {
		return err
	}
	if message != nil {
		if b, err = etf.Append(append(b, etf.VersionMagic), message, s.caps); err != nil {
			return err
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-frameHeader))
	s.buf = b
	_, err = s.rw.Write(b)
	return err
}
