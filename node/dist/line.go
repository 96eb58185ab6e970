package dist

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/etf"
)

// Answers to one process come in the order of its requests, as from a gen_server.
// While a server takes its time over one, later requests of the process to that server
// wait in a line. Other processes are answered meanwhile.

// waiterSize is what a waiting message takes besides its bytes.
const waiterSize = 256

// answerSize is what an answer in the server's own time takes: a goroutine and a line.
const answerSize = 5 << 10

// lines are the lines of a connection. Waiting messages beyond ownLines take room of
// MaxShared; if there is none, the reader waits.
type lines struct {
	n atomic.Int32 // len(all); only the reader adds to it

	mu      sync.Mutex
	all     lean[string, *line]
	held    int
	account account
}

type line struct {
	key     string
	waiting []waiter
	size    int           // of the waiter being served
	ended   chan struct{} // closed when nobody waits any longer
}

type waiter struct {
	serve func()
	size  int
}

func (s *lines) init(sh *share) { s.account = account{share: sh, own: ownLines} }

func (s *lines) open(key string) *line {
	l := &line{key: key, ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.set(key, l)
	s.n.Add(1)
	return l
}

// next returns what to do next, or ends the line.
func (s *lines) next(l *line) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.grow(-l.size)
	l.size = 0
	if len(l.waiting) == 0 {
		s.remove(l)
		return nil
	}
	w := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.size = w.size
	return w.serve
}

// end ends a line, whoever waits in it.
func (s *lines) end(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range l.waiting {
		s.grow(-w.size)
	}
	s.remove(l)
	s.grow(-l.size)
}

func (s *lines) remove(l *line) {
	if s.all.all[l.key] == l {
		s.all.remove(l.key)
		s.n.Add(-1)
		close(l.ended)
	}
}

func (s *lines) grow(n int) bool {
	if !s.account.hold(s.held + n + s.all.idle()) {
		return false
	}
	s.held += n
	return true
}

// lineOf returns the key of the line that a message may have to wait in: the process
// that wants an answer and the server that owes it; "" if no answer is wanted.
func lineOf(p *Process, message []byte) string {
	r := etf.NewReader(message)
	r.Tuple()
	switch string(r.Atom()) {
	case "$gen_call", "system":
	default:
		return ""
	}
	r.Tuple()
	return string(binary.BigEndian.AppendUint64(bytes.Clone(r.Pid()), p.ID))
}

// startInOrder is start for the answer to a call, which uses none of its terms: later
// requests of its process to the server are answered after f returns.
func (m *Message) startInOrder(f func()) bool {
	c, key := m.conn, lineOf(m.to, m.term)
	if key == "" {
		return m.start(f, func() {})
	}
	l := c.lines.open(key)
	taken := m.taken
	m.taken = 0
	runs := c.spawn(func() {
		for ; f != nil && c.ctx.Err() == nil; f = c.lines.next(l) {
			c.guard(f)
		}
	}, func() { c.lines.end(l) }, answerSize, taken)
	if !runs {
		c.lines.end(l)
	}
	return runs
}

// putBehind puts a message into its line, if there is one. If there is no room, it
// waits until the line has ended.
func (c *Conn) putBehind(p *Process, token, message []byte) bool {
	s := &c.lines
	key := lineOf(p, message)
	s.mu.Lock()
	l := s.all.all[key]
	if l == nil {
		s.mu.Unlock()
		return false
	}
	size := waiterSize + len(message) + len(token) + weight(message, ownArguments)
	room := s.grow(size)
	if room {
		m := &Message{conn: c, to: p, term: bytes.Clone(message), token: token, inLine: true, began: c.calls.began}
		l.waiting = append(l.waiting, waiter{size: size, serve: func() {
			if err := p.Receive(m); err != nil {
				c.proto.Log.Warn("message dropped", "peer", c.peer.Name, "err", err)
			}
		}})
	}
	s.mu.Unlock()
	if !room {
		select {
		case <-l.ended:
		case <-c.ctx.Done():
		}
		c.extend(true, false) // the peer may last have been heard long ago
	}
	return room
}
