package dist

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// Build appends a term to dst. If room is false, because the connections hold too much
// memory, it appends a short refusal.
type Build = func(dst []byte, room bool) []byte

// Message is a message to a local process, and sends the answers to it. It is valid until
// [Process].Receive returns. Later answers are built by functions, so that the connection
// decides when, in what order and with what memory they are built.
type Message struct {
	conn   *Conn
	to     *Process
	term   []byte
	token  []byte // the trace token of answers, or nil
	taken  int    // bytes of MaxShared, for the terms decoded from it
	queued bool   // it was queued, and is handled by the queue's goroutine
	began  time.Duration
}

// Term returns the message, which should be one external term. Only the receiver
// checks that, so that a message is parsed once.
func (m *Message) Term() []byte { return m.term }

// Caps returns the forms of terms that the peer can read.
func (m *Message) Caps() etf.Caps { return m.conn.caps }

// Context ends with the connection, after which no answer can be sent.
func (m *Message) Context() context.Context { return m.conn.ctx }

// Given returns a counter to which the receiver adds what it sends the peer, such as
// ids. It remains valid after the message.
func (m *Message) Given() *atomic.Uint64 { return &m.conn.calls.given }

// Buffer returns an empty buffer for the term of the next Send.
func (m *Message) Buffer() []byte {
	if m.queued {
		return nil
	}
	return m.conn.scratch[:0]
}

// Send sends a term to a process: to its alias if alias is not nil and the peer supports
// aliases, else to its pid. The term is written when all frames that have arrived are handled.
func (m *Message) Send(pid, alias, term []byte) {
	c, a := m.conn, answer{pid, alias, m.token, term}
	if m.queued {
		c.post(a)
		c.answered(m.began, 1)
		return
	}
	c.send(a)
	c.calls.answered++
	if cap(term) <= fullOutput && c.kept.hold(cap(term)) { // for the next Send
		c.scratch = term
	}
}

// SendAside sends the term that build returns, unless that is nil. It calls build on
// another goroutine, which may outlive the connection, or at once if there is no room.
// build may use terms decoded from the message: their memory is counted until it returns.
func (m *Message) SendAside(pid, alias []byte, build Build) {
	c, a, began := m.conn, m.answerLater(pid, alias), m.began
	send := func() { c.sendBuilt(a, build(nil, true), began) }
	if m.queued {
		send()
	} else if !m.start(send, func() {}) {
		c.sendBuilt(a, build(nil, false), began)
	}
}

// SendInTurn is like SendAside, for a term of up to size bytes. Later requests of the
// calling process to the same server are answered after it. Large terms to a peer are
// sent one at a time: each is written before the next is built. build must not use
// terms decoded from the message.
func (m *Message) SendInTurn(pid, alias []byte, size int, build Build) {
	c, a, began := m.conn, m.answerLater(pid, alias), m.began
	send := func() {
		done, room := c.takeTurn(size)
		if !room {
			c.sendBuilt(a, build(nil, false), began)
			return
		}
		defer done()
		c.sendBuilt(a, build(nil, true), began)
	}
	if m.queued {
		send()
	} else if !m.startInOrder(send) {
		c.sendBuilt(a, build(nil, false), began)
	}
}

func (m *Message) answerLater(pid, alias []byte) answer {
	return answer{pid: bytes.Clone(pid), alias: bytes.Clone(alias), token: m.token}
}

func (c *Conn) sendBuilt(a answer, term []byte, began time.Duration) {
	if a.message = term; term != nil {
		c.post(a)
		c.answered(began, 1)
	}
}

// start calls f on another goroutine when fewer than MaxSpawned run, unless the connection
// has ended by then, and then done in any case. It reports whether there is room.
func (m *Message) start(f, done func()) bool {
	taken := m.taken
	if m.taken = 0; taken == 0 {
		var err error
		if taken, err = m.conn.weigh(m.term, 0); err != nil {
			return false
		}
	}
	return m.conn.spawn(f, done, functionSize, taken)
}

// takeTurn waits until a term of up to size bytes may be built. done waits until the term
// is written, so that at most one large term delays other output. room is false if the
// connections held too much memory throughout roomTime, or if this one has ended.
func (c *Conn) takeTurn(size int) (done func(), room bool) {
	if size <= ownLarge {
		return func() {}, c.ctx.Err() == nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.ctx.Done():
		return nil, false
	}
	// The term is held once while it is built, and once while it waits to be written.
	if !c.awaitRoom(2 * size) {
		<-c.turn
		return nil, false
	}
	c.out.allow(size)
	return func() {
		c.out.flush() // the reader also gets an error, and ends the connection
		c.out.allow(-size)
		c.memory.give(2 * size)
		<-c.turn
	}, true
}

// awaitRoom takes n bytes from the pool, and reports whether there was room within roomTime.
func (c *Conn) awaitRoom(n int) bool {
	end := time.Now().Add(roomTime)
	for !c.memory.take(n) {
		if !time.Now().Before(end) {
			return false
		}
		select {
		case <-time.After(roomPause):
		case <-c.ctx.Done():
			return false
		}
	}
	return true
}

const (
	// roomTime is the time that a large answer waits for room. It is long enough that
	// memory held by other connections counts as long held, and can be reclaimed.
	roomTime  = 2 * longHeld
	roomPause = 20 * time.Millisecond
)
