package dist

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/etf"
)

// Answers to one process come in the order of its requests, as from a gen_server.
// So while a server makes one of them in its own time, what else the process asks
// that server waits in a line behind it. Other processes are answered meanwhile.

// waiterSize is what a message takes that waits in a line, besides itself.
const waiterSize = 256

// answerSize is what an answer takes that is made in its own time: a goroutine and a
// line.
const answerSize = 5 << 10

// lines are those of a connection. What waits beyond ownLines takes room of
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
	size    int           // of the waiter that is served
	ended   chan struct{} // closed when nobody waits any more
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

// next returns what is to be done next, or ends the line.
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

// lineOf is the key of the line that a message may have to wait in: the process
// that wants an answer, and the server that is to give it. "" if none is wanted.
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

// startInOrder is start for the answer to a call, which uses no terms of that: what its
// process asks the server from now on is answered when f has returned.
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

// putBehind has a message wait in its line, if there is one. If there is no room
// for that, it waits until the line has ended.
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
		m := &Message{conn: c, to: p, term: bytes.Clone(message), token: token, inLine: true}
		l.waiting = append(l.waiting, waiter{size: size, serve: func() {
			if err := p.Receive(m); err != nil {
				c.log.Warn("message dropped", "err", err)
			}
		}})
	}
	s.mu.Unlock()
	if !room {
		select {
		case <-l.ended:
		case <-c.ctx.Done():
		}
		c.extend(true, false) // the peer may have been heard long ago
	}
	return room
}
