package genserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// many is a server that answers as many calls at once as batch says.
type many struct {
	server
	batch int
}

func (*many) HandlesMany(request []byte) bool { return string(request) == get }

func (m *many) HandleCalls(request []byte, n, gap int, c Caller) ([]byte, int) {
	dst := c.Buffer()
	n = min(n, m.batch)
	m.calls = append(m.calls, fmt.Sprintf("%d calls %q", n, request))
	for range n {
		dst = append(append(dst, strings.Repeat("?", gap)...), m.reply...)
	}
	return dst, n
}

// queue is a caller behind whose message others have arrived.
type queue struct {
	caller
	next     []string
	from, to int // what Alike was asked for
}

func (*queue) Buffer() []byte { return nil }

func (q *queue) Alike(_ []byte, from, to int) (messages [][]byte) {
	q.from, q.to = from, to
	for _, m := range q.next {
		messages = append(messages, []byte(m))
	}
	return messages
}

func (q *queue) AnswerAll(pid, messages []byte, n int) {
	size := len(messages) / n
	for i := range n {
		q.Answer(pid, nil, messages[i*size:(i+1)*size])
	}
}

// refOf is a reference that ends in n.
func refOf(n int) string { return ref[:len(ref)-1] + string(rune(n)) }

// Calls of one process that differ in their references are answered at once, or
// one by one, and in order either way.
func TestAlike(t *testing.T) {
	first := call(pid, refOf(0), get)
	next := []string{call(pid, refOf(1), get), call(pid, refOf(2), get), call(pid, refOf(3), get)}
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprintf("%q: h\x02%sw\x02ok", pid, refOf(i)))
	}
	one := fmt.Sprintf("call %q utf8 true", get)
	for batch, calls := range map[int][]string{
		0: {one, fmt.Sprintf("0 calls %q", get), one, one, one},
		2: {one, fmt.Sprintf("2 calls %q", get), one},
		3: {one, fmt.Sprintf("3 calls %q", get)},
	} {
		s := &many{server{reply: "w\x02ok"}, batch}
		q := &queue{caller: caller{caps: etf.AllCaps}, next: next}
		if err := (&Server{Handler: s}).Receive([]byte(first), q); err != nil {
			t.Fatal(err)
		}
		check(t, q.sent, want...)
		check(t, s.calls, calls...)
		if got := first[q.from:q.to]; got != words {
			t.Errorf("asked for messages that differ in %q, want %q", got, words)
		}
	}
}

// Only the words of a reference may differ; with an alias the answer would have
// to go elsewhere. Calls that are not for HandleCalls are left where they are.
func TestNotAlike(t *testing.T) {
	for name, test := range map[string]struct {
		tag, request string
		asked        bool
	}{
		"number":          {"b\x00\x00\x00\x01", get, true},
		"old reference":   {"ed\x00\x03a@b\x00\x00\x00\x07\x01", get, true},
		"alias":           {"l\x00\x00\x00\x01" + alias + ref, get, false},
		"another request": {ref, "w\x04info", false},
	} {
		s, q := &many{batch: 1}, &queue{from: -1, to: -1}
		if err := (&Server{Handler: s}).Receive([]byte(call(pid, test.tag, test.request)), q); err != nil {
			t.Fatal(err)
		}
		if err := (&Server{Handler: s}).Receive([]byte(call(pid, test.tag, test.request)), new(caller)); err != nil {
			t.Fatal(err) // who tells of no others
		}
		if len(s.calls) != 2 {
			t.Errorf("%s: %q", name, s.calls)
		}
		if q.from != q.to || (q.from >= 0) != test.asked {
			t.Errorf("%s: asked for messages that differ in [%d:%d)", name, q.from, q.to)
		}
	}
}
