package dist

import (
	"bytes"
	"context"

	"github.com/flake-go/flake/node/etf"
)

// Build appends a term to dst that is sent later. Without room, as too much is under
// way, it is to say so in a few bytes.
type Build = func(dst []byte, room bool) []byte

// Message is a message to a local process, and the way back to who sent it. It
// belongs to [Process].Receive until that returns. What is sent later is built by
// functions, so that the connection says when, in what order and with what memory.
type Message struct {
	conn   *Conn
	to     *Process
	term   []byte
	token  []byte // the trace token of what is sent for it, or nil
	taken  int    // of MaxShared, for the terms that are made of it
	inLine bool   // it has waited in a line, and is handled by the goroutine of that
}

// Term returns the message. It is to be one external term: that is for who receives
// it to check, so that each message is gone through once.
func (m *Message) Term() []byte { return m.term }

// Caps tells what terms the peer can read.
func (m *Message) Caps() etf.Caps { return m.conn.caps }

// Context ends with the connection: nobody waits for an answer then.
func (m *Message) Context() context.Context { return m.conn.ctx }

// Buffer returns an empty buffer to build what is sent next in.
func (m *Message) Buffer() []byte {
	if m.inLine {
		return nil
	}
	return m.conn.scratch[:0]
}

// Send sends a term to a process: to its alias, if there is one and the peer knows
// aliases, else to its pid. It is written when all that has arrived is handled.
func (m *Message) Send(pid, alias, term []byte) {
	c, a := m.conn, answer{pid, alias, m.token, term}
	if m.inLine {
		c.post(a)
		return
	}
	c.send(a)
	if cap(term) <= fullOutput && c.kept.hold(cap(term)) { // for the next one
		c.scratch = term
	}
}

// SendAside sends what build returns, unless that is nil. It calls build on another
// goroutine, which may outlive the connection, or at once if there is no room. build may
// use terms that were made of the message: their memory is counted until it returns.
func (m *Message) SendAside(pid, alias []byte, build Build) {
	c, a := m.conn, m.answerLater(pid, alias)
	send := func() { c.sendBuilt(a, build(nil, true)) }
	if m.inLine {
		send()
	} else if !m.start(send, func() {}) {
		c.sendBuilt(a, build(nil, false))
	}
}

// SendInTurn is SendAside of a term of up to size bytes. What the process that called
// asks the same server meanwhile is answered after it. The peer's large terms go one at
// a time: each is written before the next is built. build must not use terms that were
// made of the message.
func (m *Message) SendInTurn(pid, alias []byte, size int, build Build) {
	c, a := m.conn, m.answerLater(pid, alias)
	send := func() {
		done, room := c.takeTurn(size)
		if !room {
			c.sendBuilt(a, build(nil, false))
			return
		}
		defer done()
		c.sendBuilt(a, build(make([]byte, 0, size), true))
	}
	if m.inLine {
		send()
	} else if !m.startInOrder(send) {
		c.sendBuilt(a, build(nil, false))
	}
}

func (m *Message) answerLater(pid, alias []byte) answer {
	return answer{pid: bytes.Clone(pid), alias: bytes.Clone(alias), token: m.token}
}

func (c *Conn) sendBuilt(a answer, term []byte) {
	if a.message = term; term != nil {
		c.post(a)
	}
}

// start runs f on a goroutine of its own, when there is a place for it, unless the
// connection has ended by then, and calls done at the end, whether f was called or
// not. It reports whether there is room for it.
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

// takeTurn waits until it is the turn of a term of up to size bytes, if that is large.
// done waits until it is written, so that never more than one is between others and the
// peer. There is no room if the connections hold too much for it, or if this one has
// ended.
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
	if !c.share.take(2 * size) {
		<-c.turn
		return nil, false
	}
	c.out.allow(size)
	return func() {
		c.out.flush() // an error is the reader's to see
		c.out.allow(-size)
		c.share.give(2 * size)
		<-c.turn
	}, true
}
