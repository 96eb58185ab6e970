package dist

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/wire"
)

const (
	// MaxOutput bounds the bytes that wait to be written to a peer. Only signals from
	// outside the connection's reader can come near it: the reader stops reading while
	// its answers wait. A connection that passes it is closed. So is one whose earlier
	// output is unread when more needs room and [MaxShared] has none.
	MaxOutput = 32 << 20

	// fullOutput is the size at which the reader writes its answers though more calls
	// wait; it writes earlier if MaxShared has no room left. A buffer of more takes no
	// further frames: growing it would for a moment take twice its memory.
	fullOutput = 128 << 10
)

// output gathers frames for a peer and writes them.
type output struct {
	dst      net.Conn
	wake     func()      // called when frames were appended outside the reader
	reminded atomic.Bool // it has been called, and they will be written
	full     atomic.Bool // more waits than fullOutput, or than there is room for
	overflow func()      // called when too much waits
	taken    func()      // called when the peer has taken a part of a large write

	mu      sync.Mutex
	idle    sync.Cond // nobody is writing
	ahead   [][]byte  // full buffers, written before buf
	queued  int       // bytes of those
	buf     []byte    // whole frames, except between begin and end
	spare   []byte    // another buffer
	flying  int       // bytes of the write under way
	account account   // what waits and flies
	short   bool      // not enough room for that
	kept    account   // the kept buffers
	passed  passed    // answers that others caused
	frame   int       // where the frame between begin and end starts
	writing bool
	closed  bool
	writes  uint64
	octets  atomic.Uint64 // written
}

func (o *output) init(dst net.Conn, wake, overflow, taken func(), s *share) {
	o.dst, o.wake, o.overflow, o.taken = dst, wake, overflow, taken
	o.account = account{share: s, own: ownOutput}
	o.kept = account{share: s, own: ownSpare, spare: true}
	o.idle.L = &o.mu
}

// begin opens a frame and returns the buffer to append to; end must follow.
func (o *output) begin() []byte { return o.beginWith(0) }

// beginWith is begin for a frame of about size bytes. If it is large, its room is taken at
// once: to grow a buffer step by step takes several times as much.
func (o *output) beginWith(size int) []byte {
	o.mu.Lock()
	large := size > ownOutput
	if len(o.buf) > fullOutput || large && len(o.buf) > 0 && cap(o.buf)-len(o.buf) < size {
		o.ahead, o.queued = append(o.ahead, o.buf), o.queued+len(o.buf)
		o.next()
	}
	if large {
		o.buf = slices.Grow(o.buf, size)
	}
	o.frame = len(o.buf)
	return wire.Open(o.buf)
}

// end closes the frame. buf is what begin returned, with terms appended.
func (o *output) end(buf []byte) {
	wire.Close(buf, o.frame)
	o.buf = buf
	room := o.account.hold(o.waits() + o.flying)
	if o.waits() > fullOutput || !room {
		o.full.Store(true)
	}
	o.short = !room
	o.bound(MaxOutput)
	o.mu.Unlock()
}

// next starts another buffer.
func (o *output) next() { o.buf, o.spare = o.spare[:0], nil }

// waits returns how many bytes wait to be written.
func (o *output) waits() int { return o.queued + len(o.buf) }

// bound closes the connection if more than most bytes wait.
func (o *output) bound(most int) {
	if o.waits() > most {
		o.closed = true
		o.overflow()
	}
	if o.closed {
		o.drop()
	}
}

// allow lets n more bytes wait than the account has room for, once the caller has
// taken that room. A negative n ends it.
func (o *output) allow(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.account.own += n
	o.account.hold(o.waits() + o.flying)
}

// poke has another goroutine soon write what was appended. Unlike the reader, poke's
// caller would not stop for a peer that reads nothing.
func (o *output) poke() {
	o.mu.Lock()
	if o.short && o.writing {
		o.bound(2 * ownOutput)
	}
	o.mu.Unlock()
	o.remind()
}

func (o *output) remind() {
	if o.reminded.CompareAndSwap(false, true) {
		o.wake()
	}
}

// flush writes all that was appended. If another goroutine is writing, flush waits for
// that, so the waiting bytes cannot grow. It does not wait for what is appended
// meanwhile, which may never end.
func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.writes
	if o.waits() > 0 {
		last++
	}
	for o.writing && o.writes <= last {
		o.idle.Wait()
	}
	if o.writes >= last {
		return nil
	}
	return o.write()
}

// flushFull is flush if much waits.
func (o *output) flushFull() error {
	if !o.full.Load() {
		return nil
	}
	return o.flush()
}

// offer is flush for a goroutine that must not wait for another's write.
func (o *output) offer() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return nil
	}
	return o.write()
}

// write writes what waits; another goroutine is woken for what comes meanwhile.
func (o *output) write() error {
	if o.waits() == 0 && len(o.passed.waiting) == 0 {
		return nil
	}
	ahead, last := o.ahead, o.buf
	o.flying = o.waits()
	o.ahead, o.queued = nil, 0
	o.next()
	o.full.Store(false)
	o.writing = true
	o.writes++
	own := len(last)
	last = o.passed.next(last)
	o.octets.Add(uint64(o.flying - own + len(last)))
	o.mu.Unlock()
	err := o.writeAll(ahead, last)
	o.mu.Lock()
	o.flying = 0
	o.account.hold(o.waits())
	o.passed.written()
	o.keep(last)
	o.writing = false
	o.idle.Broadcast()
	if err != nil { // nothing may follow a part of a frame
		o.closed = true
		o.drop()
	}
	if o.waits() > 0 || len(o.passed.waiting) > 0 {
		o.remind()
	}
	return err
}

// keep keeps a write's buffer for the next, unless it is large or there is no room.
func (o *output) keep(full []byte) {
	all := cap(full)
	if len(o.buf) > 0 {
		all += cap(o.buf)
	}
	switch {
	case cap(full) > 2*fullOutput || o.closed || !o.kept.hold(all):
		if len(o.buf) == 0 {
			o.buf = nil
		}
		o.kept.hold(0)
	case len(o.buf) > 0:
		o.spare = full
	default:
		o.buf = full[:0]
	}
}

func (o *output) writeAll(ahead [][]byte, last []byte) error {
	for i, b := range ahead {
		if err := o.writeParts(b); err != nil {
			return err
		}
		o.taken()
		ahead[i] = nil // others may need the memory
	}
	return o.writeParts(last)
}

// writeParts writes in one go, unless there is much: then a slow reader still shows
// that it is alive.
func (o *output) writeParts(b []byte) error {
	for len(b) > fullOutput {
		if _, err := o.dst.Write(b[:fullOutput]); err != nil {
			return err
		}
		o.taken()
		b = b[fullOutput:]
	}
	_, err := o.dst.Write(b)
	return err
}

// state returns how many writes were begun, and whether one is under way.
func (o *output) state() (writes uint64, writing bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes, o.writing
}

// tick writes a tick when nothing was written for long.
func (o *output) tick() error {
	o.mu.Lock()
	if o.waits() == 0 {
		o.buf, o.spare = nil, nil
		o.kept.hold(0)
	}
	o.buf = append(o.buf, 0, 0, 0, 0)
	o.mu.Unlock()
	return o.offer()
}

func (o *output) close() {
	o.mu.Lock()
	o.closed = true
	o.drop()
	o.mu.Unlock()
}

func (o *output) drop() {
	o.ahead, o.queued, o.buf, o.spare = nil, 0, nil, nil
	o.account.hold(o.flying)
	o.kept.hold(0)
	o.passed.drop(nil)
}
