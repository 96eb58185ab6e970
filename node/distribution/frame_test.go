package distribution

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"weak"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

// Frames are read whole, in whatever pieces they arrive.
func TestFrames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var want [][]byte
	var stream []byte
	for _, n := range []int{0, 1, 0, 5000, 3, firstBuffer - 4, 70000, 0, fullBuffer, 200000, 1, 2, 3} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		want = append(want, b)
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(n)), b...)
	}
	for name, src := range map[string]io.Reader{
		"all at once":  bytes.NewReader(stream),
		"by byte":      iotest.OneByteReader(bytes.NewReader(stream)),
		"half of it":   iotest.HalfReader(bytes.NewReader(stream)),
		"data and EOF": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		f := newFrames(src, newMemory(new(pool)))
		var got [][]byte
		for {
			frame, ok, err := f.next()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if ok {
				got = append(got, bytes.Clone(frame))
				continue
			}
			if err := f.fill(); err != nil {
				if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s: %d frames, want %d", name, len(got), len(want))
		}
	}
}

// The buffer of a large frame is released after the frame.
func TestBufferShrinks(t *testing.T) {
	large := append(binary.BigEndian.AppendUint32(nil, 1<<20), make([]byte, 1<<20)...)
	f := newFrames(bytes.NewReader(append(large, 0, 0, 0, 0)), newMemory(new(pool)))
	frames := 0
	for {
		if _, ok, _ := f.next(); ok {
			frames++
		} else if f.fill() != nil {
			break
		}
	}
	if frames != 2 || len(f.buf) != idleBuffer {
		t.Errorf("%d frames, want 2; the buffer has %d bytes", frames, len(f.buf))
	}
}

// A large buffer is kept while large frames arrive, but not while only ticks do.
func TestLargeFrames(t *testing.T) {
	large := append(binary.BigEndian.AppendUint32(nil, 3<<20), make([]byte, 3<<20)...)
	var p pool
	f := newFrames(nil, newMemory(&p))
	defer f.close()
	arrive := func(b []byte) {
		t.Helper()
		src := bytes.NewReader(b)
		f.src = src
		for src.Len() > 0 {
			if err := f.fill(); err != nil {
				t.Fatal(err)
			}
			for {
				if _, ok, err := f.next(); err != nil {
					t.Fatal(err)
				} else if !ok {
					break
				}
			}
		}
	}
	arrive(large)
	kept := &f.buf[0]
	arrive(large)
	if &f.buf[0] != kept {
		t.Error("the next large frame gets a new buffer")
	}
	arrive(append(binary.BigEndian.AppendUint32(nil, 2<<20), make([]byte, 2<<20+len(tick))...))
	arrive(large)
	if &f.buf[0] != kept {
		t.Error("after a large frame and a tick, a large frame gets a new buffer")
	}
	arrive(tick)
	arrive(tick)
	if len(f.buf) != idleBuffer {
		t.Errorf("after ticks, the buffer has %d bytes", len(f.buf))
	}
	p.nothing(t)
}

// After a large frame, the buffer shrinks to the size of a busy connection's and counts towards
// MaxSpare, if that has room for it. No bytes that have arrived are lost.
func TestAfterLargeFrame(t *testing.T) {
	frameOf := func(n int) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(n)), make([]byte, n)...) }
	for name, test := range map[string]struct {
		others int // what other connections hold of MaxSpare
		rest   int // bytes of the next frame that arrive after a call
		size   int // of the buffer then
	}{
		"room":                {0, 0, fullBuffer},
		"no room":             {MaxSpare, 0, firstBuffer},
		"some of a frame":     {MaxSpare, firstBuffer - 1, firstBuffer},
		"too much of a frame": {MaxSpare, firstBuffer, 3<<20 + wire.HeaderSize},
	} {
		var p pool
		f := newFrames(nil, newMemory(&p))
		arrive := func(b []byte) {
			t.Helper()
			src := bytes.NewReader(b)
			for f.src = src; src.Len() > 0; {
				if err := f.fill(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for ok := true; ok; {
					_, ok, _ = f.next()
				}
			}
		}
		arrive(bytes.Repeat(frameOf(100), fullBuffer/50)) // as on a busy connection
		if len(f.buf) != fullBuffer || int(p.spare.Load()) < fullBuffer-ownInput {
			t.Errorf("%s: busy: a buffer of %d bytes, %d counted", name, len(f.buf), p.spare.Load())
		}
		arrive(frameOf(3 << 20))
		if held, spare := p.held.Load(), p.spare.Load(); held < 3<<20-ownInput || spare != 0 {
			t.Errorf("%s: for a large frame, %d bytes are held, %d of MaxSpare", name, held, spare)
		}
		p.spare.Add(int64(test.others))
		next := frameOf(2 * firstBuffer)
		arrive(append(frameOf(100), next[:test.rest]...))
		arrive(next[test.rest : test.rest+1])
		size := min(test.size, fullBuffer)
		if held, spare := int(p.held.Load()), int(p.spare.Load())-test.others; len(f.buf) != test.size ||
			max(held, spare) < size-ownInput || held > 0 && spare > 0 || held > 0 != (test.size > fullBuffer) {
			t.Errorf("%s: after the large frame: a buffer of %d bytes, want %d; %d bytes are held, %d of MaxSpare",
				name, len(f.buf), test.size, held, spare)
		}
		arrive(next[test.rest+1:])
		arrive(tick)
		arrive(tick)
		if len(f.buf) != idleBuffer {
			t.Errorf("%s: idle: a buffer of %d bytes", name, len(f.buf))
		}
		p.spare.Add(-int64(test.others))
		p.nothing(t)
	}
}

// When only ticks follow a large frame, its bytes are released.
func TestLargeFrameIsReleased(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		var large weak.Pointer[byte]
		r.local.flake.receive = func(c *Message) error {
			large = weak.Make(&c.Term()[0])
			return nil
		}
		send := func(message []byte) []byte {
			return frame(etf.Tuple{number(wire.OpRegSend), theirs, etf.Atom(""), etf.Atom("flake")}, message)
		}
		r.send(send(external(make([]byte, 10*fullBuffer))))
		some := external(etf.Atom("some"))
		r.send(send(old), send(some)) // in the same buffer
		for range 3 {
			r.send(tick)
		}
		synctest.Wait()
		if runtime.GC(); large.Value() != nil {
			t.Error("the large buffer is kept")
		}
	})
}

// A frame's length does not cause an allocation before the frame's bytes arrive.
func TestAnnouncedLength(t *testing.T) {
	f := newFrames(bytes.NewReader(binary.BigEndian.AppendUint32(nil, MaxFrame)), newMemory(new(pool)))
	f.fill()
	if _, ok, err := f.next(); ok || err != nil {
		t.Errorf("MaxFrame: %t, %v", ok, err)
	}
	if err := f.fill(); err != io.EOF || len(f.buf) != idleBuffer {
		t.Errorf("fill: %v; the buffer has %d bytes", err, len(f.buf))
	}

	f = newFrames(bytes.NewReader(binary.BigEndian.AppendUint32(nil, MaxFrame+1)), newMemory(new(pool)))
	f.fill()
	if _, _, err := f.next(); err == nil {
		t.Error("MaxFrame+1: no error")
	}
}

func TestFramesInPieces(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		for _, b := range monitorP(gone, ref3) {
			r.send([]byte{b})
		}
		r.want(down(gone, ref3, "noproc"))
		r.send(tick, monitorP(gone, ref3), tick, tick, monitorP(gone, ref4)[:20])
		r.want(down(gone, ref3, "noproc"))
		r.send(monitorP(gone, ref4)[20:])
		r.want(down(gone, ref4, "noproc"))
	})
}

// Many calls are answered in order, with few writes.
func TestManyFrames(t *testing.T) {
	bubble(t, flags, func(t *testing.T, r *rig) {
		const n = 5000
		var calls, answers [][]byte
		for i := range n {
			ref := refOf(i)
			calls = append(calls, monitorP(gone, ref))
			answers = append(answers, down(gone, ref, "noproc"))
		}
		r.send(calls...)
		r.want(answers...)
		if writes, _ := r.conn.out.state(); writes > n/10 {
			t.Errorf("%d writes for %d answers", writes, n)
		}
		in, out := r.conn.Octets()
		if wantIn, wantOut := len(bytes.Join(calls, nil)), len(bytes.Join(answers, nil)); int(in) != wantIn ||
			int(out) != wantOut {
			t.Errorf("%d bytes in and %d out, want %d and %d", in, out, wantIn, wantOut)
		}
	})
}

func TestBrokenFrameEndsConnection(t *testing.T) {
	for name, test := range map[string]struct {
		bytes      []byte
		log, blame string
	}{
		"too large":           {binary.BigEndian.AppendUint32(nil, MaxFrame+1), "frame too long: 16777217", "frame_too_long"},
		"distribution header": {[]byte{0, 0, 0, 3, 131, 68, 0}, "does not begin with 112", "distribution_header"},
		"another byte":        {[]byte{0, 0, 0, 1, 0}, "does not begin with 112", "distribution_header"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, flags, func(t *testing.T, r *rig) {
				r.send(monitorP(gone, ref3), test.bytes, monitorP(gone, ref4))
				if r.alive() {
					t.Error("the connection is not closed")
				}
				r.logged(test.log)
				if r.blame != test.blame {
					t.Errorf("the peer is blamed for %q, want %q", r.blame, test.blame)
				}
			})
		})
	}
}
