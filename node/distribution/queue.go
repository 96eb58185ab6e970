package distribution

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/etf"
)

// A process receives a server's answers in the order of its requests, as it does from a gen_server
// in Erlang. While an answer is built on another goroutine, later requests from the same process to
// the same server are queued.

// queuedSize is the memory that a queued message uses in addition to its bytes.
const queuedSize = 256

// queues holds the queues of a connection. The memory that their messages use beyond ownQueues
// counts against MaxShared; if there is no room, the reader waits.
type queues struct {
	n atomic.Int32 // len(all); only the reader increases it

	mu      sync.Mutex // guards the fields below, and those of each queue but ended
	all     slimMap[string, *queue]
	held    int
	account account
}

type queue struct {
	key     string
	waiting []waiter      // the first is being served
	ended   chan struct{} // closed when the queue is removed
}

type waiter struct {
	serve func()
	size  int
}

// open adds a queue for the key of a message that is about to be served.
func (s *queues) open(key string) *queue {
	l := &queue{key: key, waiting: make([]waiter, 1), ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.set(key, l)
	s.n.Add(1)
	return l
}

// next returns the function that serves the next message, or removes the queue and
// returns nil.
func (s *queues) next(l *queue) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.grow(-l.waiting[0].size)
	l.waiting[0] = waiter{} // so that the array does not keep the message
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		s.all.remove(l.key)
		s.n.Add(-1)
		close(l.ended)
		return nil
	}
	return l.waiting[0].serve
}

// clear removes all queues and the messages that wait in them. The messages being served count
// until their functions return.
func (s *queues) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all.all {
		for _, w := range l.waiting[1:] {
			s.held -= w.size
		}
		clear(l.waiting[1:])
	}
	s.all = slimMap[string, *queue]{}
	s.grow(0)
}

// grow adds n to the bytes held. If n is positive and there is no room, it returns false instead.
func (s *queues) grow(n int) bool {
	room := s.account.resize(s.held+n+s.all.idle()) || n <= 0
	if room {
		s.held += n
	}
	return room
}

// queueKey returns the key of a message's queue: the calling process and the server. It
// returns "" if the message is not a request.
func queueKey(p *Process, message []byte) string {
	r := etf.NewReader(message)
	r.Tuple()
	switch string(r.Atom()) {
	case "$gen_call", "system":
	default:
		return ""
	}
	r.Tuple()
	return string(binary.BigEndian.AppendUint64(bytes.Clone(r.Raw()), p.ID))
}

// spawnInOrder spawns f, with a queue for the key unless the key is "".
func (c *Conn) spawnInOrder(key string, f func(), taken int) bool {
	if key == "" {
		return c.spawn(taken, func() {}, f)
	}
	var l *queue
	return c.spawn(taken, func() { l = c.queues.open(key) }, func() {
		for ; f != nil; f = c.queues.next(l) {
			if c.ctx.Err() == nil {
				c.guard(func() error { f(); return nil })
			}
		}
	})
}

// enqueue adds a message to its queue and returns true. If the message has no queue, enqueue
// returns false. If there is no room, it waits until the queue or the connection has ended, and
// then returns false.
func (c *Conn) enqueue(p *Process, token, message []byte) bool {
	full, ok := c.tryEnqueue(p, token, message)
	if full != nil {
		select {
		case <-full.ended:
		case <-c.ctx.Done():
		}
		c.extend(true, false) // nothing was read while waiting
	}
	return ok
}

// tryEnqueue is like enqueue, but if there is no room, it returns the queue.
func (c *Conn) tryEnqueue(p *Process, token, message []byte) (full *queue, ok bool) {
	s := &c.queues
	key := queueKey(p, message)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all.all[key]
	if l == nil {
		return nil, false
	}
	size := queuedSize + len(message) + len(token) + weight(message, ownArguments)
	if !s.grow(size) {
		return l, false
	}
	m := &Message{conn: c, to: p, term: bytes.Clone(message), token: token, later: true, began: c.calls.began}
	l.waiting = append(l.waiting, waiter{size: size, serve: func() {
		defer m.release()
		if err := p.Receive(m); err != nil {
			c.proto.Log.Warn("message dropped", "peer", c.peer.Name, "err", err)
		}
	}})
	return nil, true
}
