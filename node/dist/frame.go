package dist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/flake-go/flake/node/wire"
)

// MaxFrame bounds the bytes of one frame; a longer one ends its connection. No call
// here needs so much, but a BEAM sends any term that it is told to, and is answered.
// Memory for a frame is taken as its bytes arrive, not as its length announces; beyond
// firstBuffer it comes from the shared pool, see [MaxShared].
const MaxFrame = 16 << 20

const (
	idleBuffer  = 512      // of a new connection, or an idle one
	firstBuffer = 4 << 10  // of one that calls now and then, at most
	fullBuffer  = 64 << 10 // of a busy one; larger only while a larger frame is there
)

var errLong = errors.New("frame too long")

// frames reads frames from a stream, as many at a time as have arrived.
type frames struct {
	src  io.Reader
	buf  []byte
	r, w int // buf[r:w] has arrived but is not yet handled

	// Since the last fill there was
	large  bool // a frame beyond fullBuffer
	busy   bool // a frame
	ticked bool // a tick

	account account       // len(buf), if a frame needs it
	gather  account       // len(buf), else
	octets  atomic.Uint64 // that have arrived
}

func newFrames(src io.Reader, s *share) frames {
	return frames{
		src: src, buf: make([]byte, idleBuffer),
		account: account{share: s, own: ownInput},
		gather:  account{share: s, own: ownInput, spare: true},
	}
}

// next returns the next whole frame that has arrived, without its length, valid until
// fill. A tick is an empty frame.
func (f *frames) next() (frame []byte, ok bool, err error) {
	if f.w-f.r < wire.HeaderSize {
		return nil, false, nil
	}
	n := binary.BigEndian.Uint32(f.buf[f.r:])
	if n > MaxFrame {
		return nil, false, fmt.Errorf("%w: %d bytes, want at most %d", errLong, n, MaxFrame)
	}
	start := f.r + wire.HeaderSize
	end := start + int(n)
	if end > f.w {
		return nil, false, nil
	}
	f.large = f.large || n > fullBuffer
	f.busy = f.busy || n > 0
	f.ticked = f.ticked || n == 0
	f.r = end
	return f.buf[start:end:end], true, nil
}

// fill waits for bytes and reads those that are there.
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

// makeRoom makes space to read: it moves the unhandled rest to the front, or grows the
// buffer to about twice what has arrived, up to the frame's end. Once only ticks come,
// the buffer is small again. Until then a large one stays for the next large frame:
// new ones would become garbage faster than it is collected.
func (f *frames) makeRoom() error {
	rest := f.w - f.r
	size := len(f.buf)
	switch more := min(2*size, fullBuffer); {
	case rest == size: // a larger frame is arriving
		frame := wire.HeaderSize + int(binary.BigEndian.Uint32(f.buf[f.r:])) // next has checked it
		size = min(2*size, frame)
		if !f.account.hold(size) {
			return errShared
		}
		f.gather.hold(0)
	case rest == 0 && f.ticked && !f.busy:
		size = idleBuffer
		f.account.hold(0)
		f.gather.hold(0)
	case f.w == size && size < fullBuffer && f.gather.hold(more): // the peer sends more than we take at a time
		size = more
		f.account.hold(0)
	case f.account.taken > 0 && !f.large && rest < firstBuffer:
		size = min(size, fullBuffer)
		if !f.gather.hold(size) {
			size = firstBuffer
		}
		f.account.hold(0)
	}
	f.large, f.busy, f.ticked = false, false, false
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

// close gives the buffer back.
func (f *frames) close() {
	f.account.hold(0)
	f.gather.hold(0)
	f.buf, f.r, f.w = nil, 0, 0
}
