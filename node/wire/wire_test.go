package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/flake-go/flake/node/etf"
)

// Read returns frames of all sizes, and does not allocate for frames that fit its buffer.
func TestRead(t *testing.T) {
	const buffer, limit = 64 << 10, 1 << 20
	for _, size := range []int{0, 1, buffer - HeaderSize, buffer, buffer + 1, limit} {
		frame := bytes.Repeat([]byte{7}, size)
		b := append(binary.BigEndian.AppendUint32(nil, uint32(size)), frame...)
		stream := bytes.NewReader(append(b, b...))
		r := bufio.NewReaderSize(stream, buffer)
		for range 2 {
			if got, err := Read(r, limit); err != nil || !bytes.Equal(got, frame) {
				t.Errorf("a frame of %d bytes: %d, %v", size, len(got), err)
			}
		}
		if _, err := Read(r, limit); err != io.EOF {
			t.Errorf("after frames of %d bytes: %v", size, err)
		}
		for _, cut := range []int{1, len(b) - 1} {
			if _, err := Read(bufio.NewReader(bytes.NewReader(b[:cut])), limit); err == nil {
				t.Errorf("%d bytes of a frame of %d: no error", cut, size)
			}
		}
		if size > buffer {
			continue
		}
		cost := testing.AllocsPerRun(10, func() {
			stream.Seek(0, io.SeekStart)
			r.Reset(stream)
			Read(r, limit)
		})
		if cost > 0 {
			t.Errorf("a frame of %d bytes needs %v allocations", size, cost)
		}
	}
	long := append(binary.BigEndian.AppendUint32(nil, limit+1), make([]byte, limit+1)...)
	if _, err := Read(bufio.NewReader(bytes.NewReader(long)), limit); err == nil {
		t.Error("a frame beyond the limit: no error")
	}
}

// An appended frame decodes to the same message; for a value that is not a term, Append fails.
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
	var m Message
	for _, payload := range []string{"w\x07payload", ""} {
		frame, err := Read(r, 1<<10)
		if err == nil {
			err = m.Decode(frame[1:])
		}
		if err != nil || frame[0] != PassThrough || m.Op != OpRegSend || m.N != 3 || string(m.Args[2]) != "w\x01c" ||
			string(m.Payload) != payload {
			t.Errorf("%q: %+v, %v", frame, m, err)
		}
	}
	for _, terms := range [][2]etf.Term{{control, make(chan int)}, {make(chan int), control}} {
		if b, err := Append([]byte("before"), etf.AllCaps, terms[0], terms[1]); err == nil || string(b) != "before" {
			t.Errorf("a value that is not a term: %q, %v", b, err)
		}
	}
}

func TestDecode(t *testing.T) {
	for src, want := range map[string]int{ // the number of elements after the operation, or -1 for an error
		"\x83h\x00":      -1,
		"\x83h\x01a\x05": 0,
		"\x83h\x07a\x05" + strings.Repeat("j", 6): 6,
		"\x83h\x08a\x05" + strings.Repeat("j", 7): -1,
		"\x83h\x02jj":     -1,
		"\x83ja\x05":      -1,
		"h\x01a\x05":      -1,
		"\x83h\x01a\x05j": -1,
	} {
		var m Message
		if err := m.Decode([]byte(src)); (err != nil) != (want < 0) || err == nil && (m.N != want || m.Op != 5) {
			t.Errorf("%q: %+v, %v", src, m, err)
		}
	}
}

// FuzzDecode checks that a decoded message contains the whole frame.
func FuzzDecode(f *testing.F) {
	for _, payload := range [][]etf.Term{nil, {etf.Atom("x")}} {
		for n := range MaxArguments + 2 {
			control := etf.Tuple{int64(OpSend)}
			for range n {
				control = append(control, etf.List{etf.Atom("x"), int64(1)})
			}
			b, err := Append(nil, etf.AllCaps, control, payload...)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b[HeaderSize+1:])
		}
	}
	f.Add([]byte("\x83h\x00a0")) // an empty tuple has no operation
	f.Fuzz(func(t *testing.T, src []byte) {
		var m Message
		if m.Decode(src) != nil {
			return
		}
		again := etf.AppendInt(etf.AppendTupleHeader([]byte{etf.VersionMagic}, 1+m.N), int64(m.Op))
		for _, a := range m.Args[:m.N] {
			again = append(again, a...)
		}
		if m.Payload != nil {
			again = append(append(again, etf.VersionMagic), m.Payload...)
		}
		var n Message
		if err := n.Decode(again); err != nil || n.Op != m.Op || n.N != m.N || !bytes.Equal(n.Payload, m.Payload) {
			t.Errorf("%x: %v, decoded again as %+v, want %+v", src, err, n, m)
		}
	})
}

// The operations have the numbers of the documentation.
func TestOpNumbers(t *testing.T) {
	want := make(map[string]string)
	f, err := os.Open("testdata/ops.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		want[name] = number
	}
	src, err := parser.ParseFile(token.NewFileSet(), "wire.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(src, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Op") {
			name := v.Names[0].Name
			found++
			if got := v.Values[0].(*ast.BasicLit).Value; got != want[documented(name)] {
				t.Errorf("%s: %s, want %s", name, got, want[documented(name)])
			}
		}
		return true
	})
	if found == 0 {
		t.Error("wire.go defines no operation")
	}
}

// documented returns the name in the documentation, such as REG_SEND for OpRegSend.
func documented(name string) string {
	var b strings.Builder
	text := []rune(strings.TrimPrefix(name, "Op"))
	for i, c := range text {
		starts := i > 0 && unicode.IsUpper(c) &&
			(!unicode.IsUpper(text[i-1]) || i+1 < len(text) && unicode.IsLower(text[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
