package dist

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// A handler is given the frames behind one that differ from it where it allows
// that, and the connection goes on behind those.
func TestAlike(t *testing.T) {
	message := func(n byte) []byte {
		return []byte{byte(etf.SmallTupleExt), 2, byte(etf.SmallIntegerExt), n, byte(etf.NilExt)}
	}
	send := func(from etf.Pid, message []byte) []byte {
		return frame(etf.Tuple{number(opRegSend), from, etf.Atom(""), etf.Atom("flake")}, message)
	}
	one := send(theirs, message(1))
	for name, test := range map[string]struct {
		next  [][]byte
		alike int
	}{
		"none":              {nil, 0},
		"the same":          {[][]byte{one, one}, 2},
		"differ":            {[][]byte{send(theirs, message(2)), send(theirs, message(3))}, 2},
		"another sender":    {[][]byte{send(theirs, message(2)), send(theirsToo, message(2))}, 1},
		"another end":       {[][]byte{send(theirs, append(message(2)[:4], byte(etf.SmallIntegerExt)))}, 0},
		"another beginning": {[][]byte{send(theirs, append([]byte{byte(etf.SmallTupleExt), 3}, message(2)[2:]...))}, 0},
		"longer":            {[][]byte{send(theirs, append(message(2), 'j'))}, 0},
		"a tick":            {[][]byte{tick, one}, 0},
		"another process":   {[][]byte{frame(etf.Tuple{number(opRegSend), theirs, etf.Atom(""), etf.Atom("flakf")}, message(2))}, 0},
		"half of it":        {[][]byte{one, one[:len(one)-1]}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := quiet()
			c.in.buf = bytes.Join(append([][]byte{one}, test.next...), nil)
			c.in.w = len(c.in.buf)
			handled := 0
			recorder := c.proto.Processes.(*locals).flake
			recorder.receive = func(m []byte, c Caller) error {
				handled++
				if handled > 1 {
					return nil
				}
				for _, made := range [][]byte{bytes.Clone(m), {}, make([]byte, MaxFrame)} {
					if got := c.Alike(made, 3, 4); got != nil {
						t.Errorf("alike of a message that did not arrive: %x", got)
					}
				}
				got := c.Alike(m, 3, 4)
				for i, other := range got {
					want := test.next[i][len(test.next[i])-len(m):]
					if !bytes.Equal(other, want) {
						t.Errorf("%x, want %x", other, want)
					}
				}
				if len(got) != test.alike {
					t.Errorf("%d messages, want %d", len(got), test.alike)
				}
				return nil
			}
			for {
				f, ok, err := c.in.next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if err := c.handle(f); err != nil {
					t.Fatal(err)
				}
			}
			if left := c.in.w - c.in.r; name != "half of it" && left > 0 {
				t.Errorf("%d octets were not handled", left)
			}
		})
	}
}

// No more are taken at a time than a buffer of the usual size has room for, however
// many have arrived.
func TestAlikeBounded(t *testing.T) {
	c := quiet()
	one := frame(etf.Tuple{number(opRegSend), theirs, etf.Atom(""), etf.Atom("flake")}, old)
	c.in.buf = bytes.Repeat(one, 2*maxAlike+3)
	c.in.w = len(c.in.buf)
	var got []int
	c.proto.Processes.(*locals).flake.receive = func(m []byte, c Caller) error {
		got = append(got, len(c.Alike(m, 0, 0)))
		return nil
	}
	for f, ok, err := c.in.next(); ok; f, ok, err = c.in.next() {
		if err := errors.Join(err, c.handle(f)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{maxAlike, maxAlike, 0}; !slices.Equal(got, want) {
		t.Errorf("%d messages at a time, want %d", got, want)
	}
}

// AnswerAll is as many Answers, to whatever node.
func TestAnswerAll(t *testing.T) {
	third := etf.NewPid("third@127.0.0.1", 9, 1, 1)
	for n := 1; n < 4; n++ {
		for _, to := range []etf.Pid{theirs, third} {
			a, b, otherA, otherB := quiet(), quiet(), quiet(), quiet()
			a.proto.Connection = func(string) *Conn { return otherA }
			b.proto.Connection = func(string) *Conn { return otherB }
			var messages []byte
			for i := range n {
				m := fmt.Appendf(nil, "k\x00\x05hell%d", i)
				messages = append(messages, m...)
				a.Answer([]byte(to), nil, m)
			}
			b.AnswerAll([]byte(to), messages, n)
			thereA, thereB := otherA.out.passed.next(nil), otherB.out.passed.next(nil)
			if !bytes.Equal(a.out.buf, b.out.buf) || !bytes.Equal(thereA, thereB) {
				t.Errorf("%d answers to %v:\n%x %x\n%x %x", n, to, a.out.buf, thereA, b.out.buf, thereB)
			}
			if there := len(thereA) > 0; there != (to == third) {
				t.Errorf("answers to %v: to the other node is %t", to, there)
			}
			if &b.Buffer()[:1][0] != &messages[0] {
				t.Error("the buffer is not used again")
			}
		}
	}
}

// A buffer that an answer made large is not kept.
func TestBufferKept(t *testing.T) {
	for octets, want := range map[int]bool{1000: true, fullOutput: true, fullOutput + 1: false} {
		c := quiet()
		c.Answer([]byte(theirs), nil, append(make([]byte, 0, octets), byte(etf.NilExt)))
		if got := cap(c.Buffer()) > 0; got != want {
			t.Errorf("a buffer of %d octets is kept: %t", octets, got)
		}
	}
}
