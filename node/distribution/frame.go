package distribution

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/flake-go/flake/node/wire"
)

// MaxFrame bounds the bytes of one frame; a longer frame ends its connection. No call needs that
// many bytes, but a BEAM sends terms of any size and expects an answer. The read buffer grows as
// the bytes of a frame arrive; beyond firstBuffer it counts against the pool: see [MaxShared].
const MaxFrame = 16 << 20

// The sizes of a read buffer.
const (
	idleBuffer  = 512      // of a new or idle connection
	firstBuffer = 4 << 10  // the most for a connection with few calls
	fullBuffer  = 64 << 10 // of a busy connection, unless a frame is larger
)

var errLong = errors.New("frame too long")

// frames reads frames from a stream. One read takes all bytes that have arrived.
type frames struct {
	src  io.Reader
	buf  []byte
	r, w int // buf[r:w] has arrived and is not handled yet

	largest int // length of the largest frame returned by next since the last fill; -1 if there was none

	account account       // counts buf after it has grown for a frame that did not fit
	gather  account       // counts buf otherwise
	octets  atomic.Uint64 // bytes received
}

func newFrames(src io.Reader, s *memory) frames {
	return frames{
		src: src, buf: make([]byte, idleBuffer),
		account: account{memory: s, own: ownInput},
		gather:  account{memory: s, own: ownInput, spare: true},
	}
}

// next returns the next frame without its length prefix, if all of it has arrived. The frame
// is valid until the next fill; a tick is an empty frame.
func (f *frames) next() (frame []byte, ok bool, err error) {
	if f.w-f.r < wire.HeaderSize {
		return nil, false, nil
	}
	n := binary.BigEndian.Uint32(f.buf[f.r:])
	if n > MaxFrame {
		return nil, false, fmt.Errorf("%w: %d bytes, at most %d allowed", errLong, n, MaxFrame)
	}
	start := f.r + wire.HeaderSize
	end := start + int(n)
	if end > f.w {
		return nil, false, nil
	}
	f.largest = max(f.largest, int(n))
	f.r = end
	return f.buf[start:end:end], true, nil
}

// fill waits for bytes and reads those that have arrived.
func (f *frames) fill() error {
	if err := f.makeRoom(); err != nil {
		return err
	}
	n, err := f.src.Read(f.buf[f.w:])
	f.w += n
	f.octets.Add(uint64(n))
	if n > 0 {
		return nil
	}
	return err
}

// makeRoom makes room to read. It moves the unhandled bytes to the front or changes the size of
// the buffer. For a frame that does not fit, the size doubles, at most to that of the frame. The
// buffer stays large while large frames arrive, because a new buffer for each of them would create
// garbage faster than it is collected. It becomes small again when only ticks arrive.
func (f *frames) makeRoom() error {
	rest := f.w - f.r
	size := len(f.buf)
	switch more := min(2*size, fullBuffer); {
	case rest == size: // a larger frame is arriving
		frame := wire.HeaderSize + int(binary.BigEndian.Uint32(f.buf[f.r:])) // checked by next
		size = min(2*size, frame)
		if !f.account.resize(size) {
			return errShared
		}
		f.gather.resize(0)
	case rest == 0 && f.largest == 0: // only ticks
		size = idleBuffer
		f.account.resize(0)
		f.gather.resize(0)
	case f.w == size && size < fullBuffer && f.gather.resize(more): // the last read filled the buffer
		size = more
		f.account.resize(0)
	case f.account.taken > 0 && f.largest <= fullBuffer && rest < firstBuffer:
		size = min(size, fullBuffer)
		if !f.gather.resize(size) {
			size = firstBuffer
		}
		f.account.resize(0)
	}
	f.largest = -1
	if size != len(f.buf) {
		grown := make([]byte, size)
		copy(grown, f.buf[f.r:f.w])
		f.buf, f.r, f.w = grown, 0, rest
	} else if f.r > 0 {
		copy(f.buf, f.buf[f.r:f.w])
		f.r, f.w = 0, rest
	}
	return nil
}

func (f *frames) close() {
	f.account.resize(0)
	f.gather.resize(0)
	f.buf, f.r, f.w = nil, 0, 0
}
