package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// Frames of all sizes; those that fit a buffer cost no memory.
func TestRead(t *testing.T) {
	const buffer, most = 64 << 10, 1 << 20
	for _, size := range []int{0, 1, buffer - HeaderSize, buffer, buffer + 1, most} {
		frame := bytes.Repeat([]byte{7}, size)
		b := append(binary.BigEndian.AppendUint32(nil, uint32(size)), frame...)
		stream := bytes.NewReader(append(b, b...))
		r := bufio.NewReaderSize(stream, buffer)
		for range 2 {
			if got, err := Read(r, most); err != nil || !bytes.Equal(got, frame) {
				t.Errorf("a frame of %d bytes: %d, %v", size, len(got), err)
			}
		}
		if _, err := Read(r, most); err != io.EOF {
			t.Errorf("after frames of %d bytes: %v", size, err)
		}
		for _, cut := range []int{1, len(b) - 1} {
			if _, err := Read(bufio.NewReader(bytes.NewReader(b[:cut])), most); err == nil {
				t.Errorf("%d bytes of a frame of %d: no error", cut, size)
			}
		}
		if size > buffer {
			continue
		}
		cost := testing.AllocsPerRun(10, func() {
			stream.Seek(0, io.SeekStart)
			r.Reset(stream)
			Read(r, most)
		})
		if cost > 0 {
			t.Errorf("a frame of %d bytes costs %v allocations", size, cost)
		}
	}
	long := binary.BigEndian.AppendUint32(nil, most+1)
	if _, err := Read(bufio.NewReader(bytes.NewReader(long)), most); err == nil {
		t.Error("a frame longer than may be: no error")
	}
}

// An appended frame is read back unchanged, and an impossible one is not begun.
func TestAppend(t *testing.T) {
	control := etf.Tuple{int64(OpRegSend), etf.Atom("a"), etf.Atom("b"), etf.Atom("c")}
	b, err := Append([]byte("before"), etf.AllCaps, control, etf.Atom("payload"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Append(b, etf.AllCaps, control); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(bytes.NewReader(b[len("before"):]))
	for _, payload := range []string{"w\x07payload", ""} {
		frame, err := Read(r, 1<<10)
		var m Message
		if err == nil {
			err = m.Decode(frame[1:])
		}
		if err != nil || frame[0] != PassThrough || m.Op != OpRegSend || m.N != 3 || string(m.Args[2]) != "w\x01c" || string(m.Payload) != payload {
			t.Errorf("%q: %+v, %v", frame, m, err)
		}
	}
	if b, err := Append([]byte("before"), etf.AllCaps, control, make(chan int)); err == nil || string(b) != "before" {
		t.Errorf("no term: %q, %v", b, err)
	}
}
