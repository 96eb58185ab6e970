package distribution

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/wire"
)

const (
	// maxOutput bounds the bytes that wait to be written to a peer. A connection that exceeds it
	// is closed. Only signals sent from outside the connection's reader can exceed it, because the
	// reader does not read while its answers wait. Such signals also close the connection if they
	// have no room in [MaxShared] while earlier output is written.
	maxOutput = 32 << 20

	// fullOutput is the size at which the reader writes its answers even if more calls have
	// arrived. It writes earlier if MaxShared has no room left. No frame is added to a larger
	// buffer, because growing it would briefly need twice its memory.
	fullOutput = 128 << 10

	// largeFrame is the size above which the reader writes a frame immediately. Otherwise
	// thousands of connections would hold such frames while their next answers wait to be
	// built.
	largeFrame = 8 << 10
)

// output collects frames for a peer and writes them.
type output struct {
	dst      net.Conn
	reminded atomic.Bool   // a goroutine will write the frames that were appended outside the reader
	full     atomic.Bool   // a large frame waits, or more bytes than fullOutput or the pool allows
	octets   atomic.Uint64 // bytes written
	start    func(func())  // starts a goroutine
	fail     func(error)   // ends the connection when a write fails, or too many bytes wait
	taken    func()        // called when the peer has taken a part of a large write

	mu      sync.Mutex // guards the fields below
	idle    sync.Cond  // signaled when writing becomes false
	ahead   [][]byte   // full buffers, written before buf
	queued  int        // bytes in ahead
	buf     []byte     // whole frames
	flying  int        // bytes of the current write
	account account    // counts waiting and flying bytes
	kept    account    // counts buf when it is empty
	passed  passed     // answers to calls that other peers forwarded
	writing bool
	closed  bool
	writes  uint64
}

func (o *output) init(dst net.Conn, start func(func()), fail func(error), taken func(), s *memory) {
	o.dst, o.start, o.fail, o.taken = dst, start, fail, taken
	o.account = account{memory: s, own: ownOutput}
	o.kept = account{memory: s, own: ownSpare, spare: true}
	o.idle.L = &o.mu
}

// add appends a frame of about size bytes; build appends the frame's terms to its argument. If build
// panics, nothing is appended.
func (o *output) add(size int, build func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.growFor(size)
	start := len(o.buf)
	buf := build(wire.Open(o.buf))
	wire.Close(buf, start)
	o.buf = buf
	if room := o.count(); o.waits() > fullOutput || len(buf)-start > largeFrame || !room {
		o.full.Store(true)
	}
	o.bound(maxOutput)
}

// growFor makes room in buf for a frame of about size bytes. It allocates a large frame in one
// step, because growing a buffer gradually needs several times its memory.
func (o *output) growFor(size int) {
	large := size > ownOutput
	if len(o.buf) > fullOutput || large && len(o.buf) > 0 && cap(o.buf)-len(o.buf) < size {
		o.ahead, o.queued, o.buf = append(o.ahead, o.buf), o.queued+len(o.buf), nil
	}
	if large {
		o.buf = slices.Grow(o.buf, size)
	}
}

// waits returns the number of bytes that wait to be written.
func (o *output) waits() int { return o.queued + len(o.buf) }

// count counts the waiting and flying bytes, and reports whether there is room for them.
func (o *output) count() bool { return o.account.resize(o.waits() + o.flying) }

// bound closes the connection if more than limit bytes wait.
func (o *output) bound(limit int) {
	if o.waits() > limit {
		o.closed = true
		o.fail(errUnread)
	}
	if o.closed {
		o.drop()
	}
}

// allow lets n bytes wait without counting them, because the caller has already taken room for
// them. A negative n undoes that.
func (o *output) allow(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.account.own += n
	o.count()
}

// poke starts another goroutine that writes the appended frames. If too many bytes wait, it closes
// the connection, because the callers of poke, unlike the reader, append even while the peer does
// not read.
func (o *output) poke() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing && !o.count() {
		o.bound(2 * ownOutput)
	}
	o.remind()
}

// remind starts a goroutine that writes the appended frames, unless one has been started. It
// starts none after close, because [Proto.Wait] may have returned by then.
func (o *output) remind() {
	if !o.closed && o.reminded.CompareAndSwap(false, true) {
		o.start(func() {
			o.reminded.Store(false)
			o.offer()
		})
	}
}

// flush writes all appended frames, or waits until another goroutine has written them. So the
// reader appends nothing while its answers wait. flush does not wait for frames appended after the
// call, because other goroutines may keep appending frames.
func (o *output) flush() error { return o.write(true) }

// offer is like flush, but returns immediately if another goroutine is writing.
func (o *output) offer() error { return o.write(false) }

// write writes the buffers that next returns. If more frames wait after that, it starts a goroutine
// to write them.
func (o *output) write(wait bool) error {
	ahead, last, ok := o.next(wait)
	if !ok {
		return nil
	}
	err := errWrite // unless writeAll returns
	defer func() { o.wrote(last, err) }()
	err = o.writeAll(ahead, last)
	return err
}

var errWrite = errors.New("write failed")

// next returns the buffers to write, and begins a write. It returns false if nothing waits, or
// another goroutine is writing; if wait is true, it first waits until the frames that wait now are
// written.
func (o *output) next(wait bool) (ahead [][]byte, last []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if wait {
		written := o.writes
		if o.waits() > 0 {
			written++
		}
		for o.writing && o.writes <= written {
			o.idle.Wait()
		}
		if o.writes >= written {
			return nil, nil, false
		}
	}
	if o.writing || o.waits() == 0 && len(o.passed.waiting) == 0 {
		return nil, nil, false
	}
	ahead, last = o.ahead, o.buf
	o.flying = o.waits()
	o.ahead, o.queued, o.buf = nil, 0, nil
	o.full.Store(false)
	o.writing = true
	o.writes++
	own := len(last)
	last = o.passed.next(last)
	o.octets.Add(uint64(o.flying - own + len(last)))
	return ahead, last, true
}

// wrote records the end of a write; last is the last buffer that it wrote.
func (o *output) wrote(last []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flying = 0
	o.count()
	o.passed.written()
	o.keep(last)
	o.writing = false
	o.idle.Broadcast()
	if err != nil { // nothing may follow a partial frame
		o.closed = true
		o.drop()
		o.fail(err) // whoever wrote: a peer whose answers are dropped must not stay connected
	}
	if o.waits() > 0 || len(o.passed.waiting) > 0 {
		o.remind()
	}
}

// keep saves a written buffer for the next frames, unless it is large, there is no room, or another
// buffer was started during the write.
func (o *output) keep(written []byte) {
	if o.buf == nil && cap(written) <= 2*fullOutput && !o.closed && o.kept.resize(cap(written)) {
		o.buf = written[:0]
	} else {
		o.kept.resize(0)
	}
}

func (o *output) writeAll(ahead [][]byte, last []byte) error {
	for i, b := range ahead {
		if err := o.writeParts(b); err != nil {
			return err
		}
		o.taken()
		ahead[i] = nil // free it before the next write
	}
	return o.writeParts(last)
}

// writeParts writes large buffers in parts, so that each part written shows that a slow peer
// is still reading.
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

func (o *output) state() (writes uint64, writing bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes, o.writing
}

func (o *output) tick() error {
	o.addTick()
	return o.offer()
}

func (o *output) addTick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits() == 0 {
		o.buf = nil
		o.kept.resize(0)
	}
	if !o.closed {
		o.buf = append(o.buf, 0, 0, 0, 0)
	}
}

// close drops the waiting frames and waits for the current write to end. No write begins after
// that.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.drop()
	for o.writing {
		o.idle.Wait()
	}
}

func (o *output) drop() {
	o.ahead, o.queued, o.buf = nil, 0, nil
	o.count()
	o.kept.resize(0)
	o.passed.drop(nil)
}
