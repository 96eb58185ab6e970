// Package wire encodes and decodes what two connected nodes send each other: frames,
// and the control messages in them. It implements the chapter "Protocol between
// Connected Nodes" of https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html,
// without distribution headers and fragments.
//
// A frame is its length in four bytes, [PassThrough], and one or two external terms,
// each with a version byte: the control message, and a payload. An empty frame is a
// tick.
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

// Open appends the beginning of a frame. The caller appends a control message, and
// perhaps a version byte and a payload.
func Open(dst []byte) []byte { return append(dst, 0, 0, 0, 0, PassThrough, etf.VersionMagic) }

// Close closes the frame that begins at start and ends b.
func Close(b []byte, start int) {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-HeaderSize))
}

// Append appends the frame of a control message, and of a payload if there is one.
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

// Read returns the next frame, without its length; a frame may have up to most bytes.
// It is valid until the next read of r.
func Read(r *bufio.Reader, most int) ([]byte, error) {
	header, err := r.Peek(HeaderSize)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(header))
	if n > most {
		return nil, fmt.Errorf("frame of %d bytes, at most %d allowed", n, most)
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
