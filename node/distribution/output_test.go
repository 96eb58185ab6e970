package distribution

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// sendOctets sends the peer n bytes from outside the reader.
func (r *rig) sendOctets(n int) {
	r.tell(make([]byte, n))
	synctest.Wait()
}

// Waiting output and output being written count against the pool, except for the connection's allowance
// and the bytes that allow adds to it.
func TestOutputHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		held := func(want int) {
			t.Helper()
			if got := int(r.proto.pool.held.Load()); got != want {
				t.Errorf("%d bytes are held, want %d", got, want)
			}
		}
		const large = 10 * accountStep
		r.sendOctets(large) // is being written
		r.sendOctets(large)
		held(2*large + accountStep - ownOutput)
		r.conn.out.allow(large)
		held(large + accountStep - ownOutput)
		r.conn.out.allow(-large)
		held(2*large + accountStep - ownOutput)
		go r.listen()
		synctest.Wait()
		held(0)
		r.close()
	})
}

// Without room, a peer that does not read is disconnected when its allowance is used up.
func TestOutputWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		r.proto.pool.take(everything)
		r.sendOctets(2 * ownOutput) // is being written
		r.sendOctets(ownOutput)
		if !r.alive() {
			t.Error("the connection is closed too early")
		}
		r.sendOctets(ownOutput)
		if r.alive() {
			t.Error("the connection is not closed")
		}
		if want := "answers_not_read"; r.blame != want {
			t.Errorf("the peer is blamed for %q, want %q", r.blame, want)
		}
		if held := r.proto.pool.held.Load(); held != everything {
			t.Errorf("%d bytes are held, want %d", held, everything)
		}
	})
}

// with returns a function for [output.add] that appends n bytes.
func with(n int) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, make([]byte, n)...) }
}

// maxOutput bytes may wait. One more frame closes the connection, and all waiting bytes are
// dropped.
func TestMaxOutputExactly(t *testing.T) {
	var p pool
	var o output
	overflows := 0
	o.init(nil, nil, func(error) { overflows++ }, nil, newMemory(&p))
	o.add(0, with(maxOutput-len(wire.Open(nil))))
	if overflows != 0 || o.waits() != maxOutput {
		t.Errorf("%d bytes wait, %d overflows", o.waits(), overflows)
	}
	o.add(0, with(0))
	if held := p.held.Load(); overflows != 1 || o.waits() != 0 || held != 0 {
		t.Errorf("%d bytes wait, %d are held, %d overflows", o.waits(), held, overflows)
	}
}

// When a process ends, all reports of it are appended before any is written. Together they count
// against maxOutput.
func TestMaxOutputOfEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		terms := make([]byte, 40)
		w := &r.conn.watches
		w.mu.Lock()
		for _, set := range []*watchSet{&w.monitors, &w.links} {
			for i := range maxWatches {
				w.add(set, ourID, binary.BigEndian.AppendUint32(nil, uint32(i)), terms, terms, nil)
			}
		}
		w.mu.Unlock()
		if r.end(ourID, etf.Atom(strings.Repeat("x", maxReason-10))); r.alive() {
			t.Error("the connection is not closed")
		}
		if want := "answers_not_read"; r.blame != want {
			t.Errorf("the peer is blamed for %q, want %q", r.blame, want)
		}
	})
}

// When more than fullOutput waits, the reader writes all of it before it handles more calls.
func TestFullOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		before := len(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), theirs}, []byte{}))
		handled := 0
		r.local.flake.receive = func(c *Message) error {
			handled++
			for range fullOutput / 2 / largeFrame {
				c.Send([]byte(theirs), nil, make([]byte, largeFrame-before))
			}
			return nil
		}
		call := frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old)
		r.send(call, call, call, call, call)
		if synctest.Wait(); handled != 3 {
			t.Errorf("%d calls are handled, want 3", handled)
		}
		go r.listen()
		synctest.Wait()
		if writes, _ := r.conn.out.state(); handled != 5 || writes != 2 {
			t.Errorf("%d calls are handled, want 5, and answered in %d writes, want 2", handled, writes)
		}
		r.close()
	})
}

// Waiting output is held in buffers that do not grow large, and written in order.
func TestManyBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, size = 100, fullOutput / 5
		r := connectDeaf(t, flags)
		for i := range n {
			r.tell(bytes.Repeat([]byte{byte(i)}, size))
		}
		synctest.Wait()
		for _, b := range append(r.conn.out.ahead, r.conn.out.buf) {
			if cap(b) > 2*fullOutput {
				t.Errorf("a buffer has room for %d bytes", cap(b))
			}
		}
		go r.listen()
		frames := r.received()
		for i, f := range frames {
			if f[len(f)-1] != byte(i) {
				t.Fatalf("frame %d is number %d", i, f[len(f)-1])
			}
		}
		if len(frames) != n || r.conn.out.waits() != 0 {
			t.Errorf("%d frames arrived, and %d bytes wait", len(frames), r.conn.out.waits())
		}
		r.close()
	})
}

// A flush writes all waiting buffers, but not frames appended during it.
func TestFlushMany(t *testing.T) {
	var o output
	w := &writer{each: func() error {
		o.add(0, with(0))
		return nil
	}}
	o.init(w, nil, nil, func() {}, newMemory(new(pool)))
	o.reminded.Store(true) // so that no other goroutine writes
	for range 10 {
		o.add(0, with(fullOutput))
	}
	want := uint64(o.waits())
	if err := o.flush(); err != nil || o.octets.Load() != want || len(o.buf) == 0 {
		t.Errorf("%v, %d of %d bytes are written", err, o.octets.Load(), want)
	}
}

// Nothing is written after a failed write, because it may have written a part of a frame. So the
// failure ends the connection, whoever wrote.
func TestNothingAfterFailure(t *testing.T) {
	fault := errors.New("cut")
	var o output
	w := &writer{each: func() error {
		o.add(0, with(0))
		return fault
	}}
	var ended error
	o.init(w, nil, func(err error) { ended = err }, func() {}, newMemory(new(pool)))
	for range 3 {
		o.add(0, with(fullOutput))
	}
	if err := o.flush(); err != fault || ended != fault || o.waits() != 0 {
		t.Errorf("flush: %v, the connection ended with %v, %d bytes wait", err, ended, o.waits())
	}
	o.add(0, with(0))
	if err := o.flush(); err != nil || w.writes != 1 || o.waits() != 0 {
		t.Errorf("second flush: %v, %d writes, %d bytes wait", err, w.writes, o.waits())
	}
}

// After close, nothing is written, not even a tick; no goroutine starts, and no memory is held.
func TestNothingAfterClose(t *testing.T) {
	var p pool
	var o output
	w, started, forwarding := newStream(nil), 0, newMemory(&p)
	o.init(w, func(func()) { started++ }, nil, nil, newMemory(&p))
	o.add(0, with(0))
	if !o.pass(forwarding, make([]byte, wire.HeaderSize)) || started != 1 {
		t.Errorf("a passed-on answer is refused, or %d goroutines are started, want 1", started)
	}
	o.reminded.Store(false)
	o.close()
	o.poke()
	if o.pass(forwarding, make([]byte, wire.HeaderSize)) {
		t.Error("a passed-on answer is accepted after close")
	}
	if err := o.tick(); err != nil || w.writes != 0 || o.waits() != 0 || started != 1 {
		t.Errorf("%v, %d writes, %d bytes wait, %d goroutines", err, w.writes, o.waits(), started)
	}
	p.nothing(t)
}

// Wait waits for the writes of other goroutines.
func TestWaitForWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, gate, ended := quiet(), make(chan struct{}), false
		c.out.dst = &writer{each: func() error {
			<-gate
			return nil
		}}
		c.out.reminded.Store(false)
		c.out.add(0, with(0))
		c.out.poke()
		go func() {
			c.proto.Wait()
			ended = true
		}()
		if synctest.Wait(); ended {
			t.Error("Wait returns during a write")
		}
		close(gate)
		if synctest.Wait(); !ended {
			t.Error("Wait does not return after the write")
		}
	})
}

// writer counts writes. Write calls each, and returns its error.
type writer struct {
	net.Conn
	each   func() error
	writes int
}

func (w *writer) Write(b []byte) (int, error) {
	w.writes++
	return len(b), w.each()
}

// Without room, or after a large answer, the reader writes after each call, and waits for
// the write.
func TestReaderWritesImmediately(t *testing.T) {
	for _, c := range []struct{ taken, answer int }{{everything, ownOutput}, {0, largeFrame}} {
		synctest.Test(t, func(t *testing.T) {
			r := connectDeaf(t, flags)
			r.proto.pool.take(c.taken)
			handled := 0
			r.local.flake.receive = func(m *Message) error {
				handled++
				m.Send([]byte(theirs), nil, make([]byte, c.answer))
				return nil
			}
			call := frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, old)
			r.send(call, call, call, call)
			if synctest.Wait(); handled != 1 {
				t.Errorf("%+v: %d calls are handled, want 1", c, handled)
			}
			go r.listen()
			synctest.Wait()
			if writes, _ := r.conn.out.state(); handled != 4 || writes != 4 {
				t.Errorf("%+v: %d calls are handled and answered in %d writes, want 4", c, handled, writes)
			}
			r.proto.pool.give(c.taken)
			r.close()
		})
	}
}

// A flush waits for frames appended before it, not for those appended during it.
func TestFlushEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		b := make([]byte, 1000)
		send := func() { r.conn.sendHere(answer{to: []byte(theirs), message: external(etf.Atom("hello"))}) }
		send()
		go r.conn.out.flush()
		synctest.Wait()
		send()
		flushed := false
		go func() {
			r.conn.out.flush()
			flushed = true
		}()
		for round := range 3 {
			if synctest.Wait(); flushed != (round == 2) {
				t.Errorf("after %d writes: flushed: %t", round, flushed)
			}
			send()
			r.conn.out.remind()
			r.peer.Read(b)
		}
		r.close()
	})
}

// A flush ends once its frames are written, even if more frames wait or the next write has begun.
func TestFlushOfWritten(t *testing.T) {
	for _, test := range []struct {
		writes  uint64
		writing bool
		want    bool
	}{{0, true, false}, {1, true, false}, {1, false, true}, {2, true, true}} {
		synctest.Test(t, func(t *testing.T) {
			var o output
			w, flushed := newStream(nil), false
			o.init(w, nil, nil, nil, newMemory(new(pool)))
			o.writing = true // by another goroutine
			o.add(0, with(0))
			go func() {
				o.flush()
				flushed = true
			}()
			synctest.Wait()
			reach := func(writes uint64, writing bool) {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.writes, o.writing = writes, writing
				o.idle.Broadcast()
			}
			reach(test.writes, test.writing)
			if synctest.Wait(); flushed != test.want || w.writes != 0 {
				t.Errorf("after %d writes: flushed: %t, with %d writes", test.writes, flushed, w.writes)
			}
			reach(1, false)
		})
	}
}

// Output sent while another goroutine writes is written after that write.
func TestSentDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := connectDeaf(t, flags)
		hello := external(etf.Atom("hello"))
		r.conn.sendHere(answer{to: []byte(theirs), message: hello})
		go r.conn.out.flush()
		synctest.Wait()
		r.conn.say(hello)
		synctest.Wait()
		go r.listen()
		if got := len(r.received()); got != 2 {
			t.Errorf("%d messages, want 2", got)
		}
		r.close()
	})
}

// The buffer of a write is reused and counted, unless it is large, there is no room, or the output
// was closed during the write.
func TestSpareOutput(t *testing.T) {
	for name, test := range map[string]struct {
		size, others int // others is what other connections hold of MaxSpare
		closed, kept bool
	}{
		"small":   {size: ownSpare, others: MaxSpare - accountStep, kept: true},
		"largest": {size: 2 * fullOutput, kept: true},
		"larger":  {size: 2*fullOutput + 1},
		"no room": {size: ownSpare + accountStep + 1, others: MaxSpare - accountStep},
		"closed":  {size: 2 * fullOutput, closed: true},
	} {
		var p pool
		var o output
		w := &writer{each: func() error {
			o.closed = test.closed
			return nil
		}}
		o.init(w, nil, nil, nil, newMemory(&p))
		o.kept.resize(ownSpare + 1) // for an earlier buffer
		p.spare.Add(int64(test.others))
		o.buf = make([]byte, 1, test.size)
		want := 0
		if test.kept {
			want = test.size
		}
		if err := o.flush(); err != nil || cap(o.buf) != want || o.kept.taken < want-ownSpare ||
			want == 0 && o.kept.taken > 0 {
			t.Errorf("%s: %v, %d bytes are kept, %d counted", name, err, cap(o.buf), o.kept.taken)
		}
	}
}

// A tick releases the buffer kept for reuse, but not the frames that wait.
func TestTickReleases(t *testing.T) {
	var o output
	w := &writer{each: func() error {
		if o.kept.taken != 0 {
			t.Errorf("%d bytes are counted while a tick is written", o.kept.taken)
		}
		return nil
	}}
	o.init(w, nil, nil, nil, newMemory(new(pool)))
	o.buf = make([]byte, 0, fullOutput)
	o.kept.resize(fullOutput)
	if err := o.tick(); err != nil || cap(o.buf) > ownSpare {
		t.Errorf("%v, %d bytes are kept", err, cap(o.buf))
	}
	o.add(0, with(0)) // as the reader does at that moment
	want := o.octets.Load() + uint64(o.waits()+len(tick))
	if err := o.tick(); err != nil || o.octets.Load() != want {
		t.Errorf("%v, %d bytes are written, want %d", err, o.octets.Load(), want)
	}
}

// A frame is added to a buffer of at most fullOutput bytes. A large frame gets a buffer of its
// size, unless it fits in the current one.
func TestGrowFor(t *testing.T) {
	var o output
	o.init(nil, nil, nil, nil, newMemory(new(pool)))
	add := func(size, frame, ahead int) {
		t.Helper()
		o.add(size, func(b []byte) []byte {
			if len(o.ahead) != ahead || cap(b)-len(o.buf) < size {
				t.Errorf("a frame of %d bytes begins after %d full buffers, want %d; its buffer has %d bytes",
					size, len(o.ahead), ahead, cap(b))
			}
			return append(b, make([]byte, len(o.buf)+frame-len(b))...)
		})
	}
	const small, large = 1000, 2 * ownOutput
	o.buf = make([]byte, 0, small) // kept from an earlier write
	add(large, large, 0)
	o.buf = o.buf[:0:large]
	add(large, small, 0)
	add(large-small, small, 0) // exactly fits
	add(large-small, small, 1) // does not fit
	o.buf = nil
	for range 3 * largeFrame / small {
		add(0, small, 1)
	}
	if o.full.Load() {
		t.Error("the reader writes immediately, although no frame is large")
	}
	add(0, fullOutput-len(o.buf), 1)
	add(0, small, 1)
	add(0, small, 2)
}

// Large output is written in parts, and taken is called after each part. Written buffers are
// released.
func TestWriteParts(t *testing.T) {
	for octets, parts := range map[int]int{1: 1, fullOutput: 1, fullOutput + 1: 2, 2 * fullOutput: 2} {
		var o output
		w := newStream(nil)
		taken := 1 // the end of the write reports the last part
		o.init(w, nil, nil, func() { taken++ }, newMemory(new(pool)))
		if err := o.writeParts(make([]byte, octets)); err != nil || w.writes != parts || taken != parts {
			t.Errorf("%d bytes: %v, %d writes, %d parts taken, want %d", octets, err, w.writes, taken, parts)
		}
		ahead := [][]byte{make([]byte, 1), make([]byte, octets)}
		if err := o.writeAll(ahead, nil); err != nil || taken != 2*parts+1 || ahead[0] != nil || ahead[1] != nil {
			t.Errorf("buffers of 1 and %d bytes: %v, %d parts taken in all; released: %t", octets, err, taken, ahead[1] == nil)
		}
	}
}

// A panic between the start and the end of a frame sends nothing of the frame, and delays neither
// later frames nor the end.
func TestPanicInFrame(t *testing.T) {
	for _, size := range []int{0, 2 * ownOutput} {
		synctest.Test(t, func(t *testing.T) {
			r := connect(t, flags)
			half := func() error {
				r.conn.out.add(size, func(b []byte) []byte {
					_ = append(b, "half"...)
					panic("in a frame")
				})
				return nil
			}
			hello := external(etf.Atom("hello"))
			whole := frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), theirs}, hello)
			r.conn.sendHere(answer{to: []byte(theirs), message: hello})
			if err := r.conn.guard(half); err == nil {
				t.Error("the panic is not reported")
			}
			r.tell(etf.Atom("hello"))
			r.want(whole, whole)
			r.conn.Shutdown()
			<-r.conn.Done()
			r.proto.Wait()
		})
	}
}

// A panic during a write ends the connection, and others do not wait for that write.
func TestPanicInWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		c := quiet()
		w := &writer{each: func() error { panic("in a write") }}
		c.out.init(w, c.proto.Go, c.cancel, func() {}, newMemory(&p))
		c.out.add(0, with(fullOutput))
		if err := c.guard(c.out.flush); err == nil {
			t.Error("the panic is not reported")
		}
		c.out.add(0, with(0))
		if err := c.out.flush(); err != nil || w.writes != 1 {
			t.Errorf("after the panic: %v, %d writes", err, w.writes)
		}
		c.out.close()
		p.nothing(t)
	})
}
