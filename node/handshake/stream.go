package handshake

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxMessage bounds the bytes of one handshake message. The longest is a challenge with a
// name of MaxNameLength; later versions may use the rest.
const MaxMessage = 512

// stream reads and writes messages with a length before each.
type stream struct {
	rw      io.ReadWriter
	lenSize int // 2, or 4 in TLS distribution
	buf     [4 + MaxMessage]byte
}

// recv returns the next message, valid until the next call of recv or send.
func (s *stream) recv() ([]byte, error) {
	head := s.buf[:s.lenSize]
	if _, err := io.ReadFull(s.rw, head); err != nil {
		return nil, err
	}
	n := uint64(binary.BigEndian.Uint16(head))
	if s.lenSize == 4 {
		n = uint64(binary.BigEndian.Uint32(head))
	}
	if n == 0 || n > MaxMessage {
		return nil, fmt.Errorf("message of %d bytes, must have 1 to %d", n, MaxMessage)
	}
	if _, err := io.ReadFull(s.rw, s.buf[:n]); err != nil {
		return nil, fmt.Errorf("message of %d bytes: %w", n, err)
	}
	return s.buf[:n], nil
}

// send writes one message with one Write.
func (s *stream) send(m interface{ Append([]byte) []byte }) error {
	b := m.Append(s.buf[:s.lenSize])
	n := len(b) - s.lenSize
	if s.lenSize == 4 {
		binary.BigEndian.PutUint32(b, uint32(n))
	} else {
		binary.BigEndian.PutUint16(b, uint16(n))
	}
	_, err := s.rw.Write(b)
	return err
}

type decoder interface{ Decode([]byte) error }

func (s *stream) recvInto(m decoder) error {
	b, err := s.recv()
	if err != nil {
		return err
	}
	return m.Decode(b)
}
