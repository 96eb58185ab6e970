package dist

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/etf"
)

// Build appends a term, sent later, to dst. If there is no room because too much is
// under way, it appends a short refusal.
type Build = func(dst []byte, room bool) []byte

// Message is a message to a local process, and the way back to its sender. It belongs
// to [Process].Receive until that returns. What is sent later is built by functions,
// so the connection decides when, in what order and with what memory.
type Message struct {
	conn   *Conn
	to     *Process
	term   []byte
	token  []byte // the trace token for what is sent in answer, or nil
	taken  int    // of MaxShared, for the terms decoded from it
	inLine bool   // it has waited in a line, and that line's goroutine handles it
	began  time.Duration
}

// Term returns the message, which should be one external term. The receiver checks
// that, so each message is parsed once.
func (m *Message) Term() []byte { return m.term }

// Caps returns which terms the peer can read.
func (m *Message) Caps() etf.Caps { return m.conn.caps }

// Context ends with the connection: after that nobody waits for an answer.
func (m *Message) Context() context.Context { return m.conn.ctx }

// Given is where the receiver adds what it gives the peer, such as ids. It outlives the
// message.
func (m *Message) Given() *atomic.Uint64 { return &m.conn.calls.given }

// Buffer returns an empty buffer in which to build what is sent next.
func (m *Message) Buffer() []byte {
	if m.inLine {
		return nil
	}
	return m.conn.scratch[:0]
}

// Send sends a term to a process: to its alias, if there is one and the peer knows
// aliases, else to its pid. It is written once all that has arrived is handled.
func (m *Message) Send(pid, alias, term []byte) {
	c, a := m.conn, answer{pid, alias, m.token, term}
	if m.inLine {
		c.post(a)
		c.answered(m.began, 1)
		return
	}
	c.send(a)
	c.calls.answered++
	if cap(term) <= fullOutput && c.kept.hold(cap(term)) { // for the next one
		c.scratch = term
	}
}

// SendAside sends what build returns, unless that is nil. It calls build on another
// goroutine, which may outlive the connection, or at once if there is no room. build
// may use terms decoded from the message: their memory counts until it returns.
func (m *Message) SendAside(pid, alias []byte, build Build) {
	c, a, began := m.conn, m.answerLater(pid, alias), m.began
	send := func() { c.sendBuilt(a, build(nil, true), began) }
	if m.inLine {
		send()
	} else if !m.start(send, func() {}) {
		c.sendBuilt(a, build(nil, false), began)
	}
}

// SendInTurn is SendAside for a term of up to size bytes. Later requests of the
// calling process to the same server are answered after it. The peer's large terms go
// one at a time: each is written before the next is built. build must not use terms
// decoded from the message.
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
	if m.inLine {
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

// start runs f on its own goroutine when there is a place, unless the connection has
// ended by then, and calls done at the end, whether f ran or not. It reports whether
// there is room.
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

// takeTurn waits for the turn of a large term, of up to size bytes. done waits until
// it is written, so that never more than one of them delays other output. There is no
// room if the connections hold too much for all of roomTime, or if this one has ended.
func (c *Conn) takeTurn(size int) (done func(), room bool) {
	if size <= ownLarge {
		return func() {}, c.ctx.Err() == nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.ctx.Done():
		return nil, false
	}
	// Once while it is built, and once while it waits to be written.
	if !c.awaitRoom(2 * size) {
		<-c.turn
		return nil, false
	}
	c.out.allow(size)
	return func() {
		c.out.flush() // the reader will see an error
		c.out.allow(-size)
		c.share.give(2 * size)
		<-c.turn
	}, true
}

// awaitRoom takes n bytes when there is room, or reports that there was none in roomTime.
func (c *Conn) awaitRoom(n int) bool {
	end := time.Now().Add(roomTime)
	for !c.share.take(n) {
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
	// roomTime is how long a large answer waits for room: so long that what others have
	// held since before counts as long held, and makes room.
	roomTime  = 2 * longHeld
	roomPause = 20 * time.Millisecond
)
