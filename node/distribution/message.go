package distribution

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// Message is a message to a local process; its methods send the answers. It is valid until
// [Process].Receive or the function passed to Later returns.
type Message struct {
	conn   *Conn
	to     *Process
	term   []byte
	token  []byte // the trace token for answers, or nil
	taken  int    // bytes taken from MaxShared for the terms decoded from the message
	later  bool   // the message is not handled by the reader
	began  time.Duration
	size   int    // as passed to Grow
	undo   func() // releases what Grow took; nil if Grow took nothing
	refuse bool   // Grow must return false
}

// Term returns the message, which should be one external term. Only the receiver
// checks this, so that a message is parsed once.
func (m *Message) Term() []byte { return m.term }

// Caps returns the forms of terms that the peer can read.
func (m *Message) Caps() etf.Caps { return m.conn.caps }

// Context returns a context that ends with the connection; no answer can be sent after that.
func (m *Message) Context() context.Context { return m.conn.ctx }

// Count adds n to the number of things, such as ids, that the receiver has sent the peer: see
// [Conn.Given].
func (m *Message) Count(n int) { m.conn.calls.given.Add(uint64(n)) }

// Buffer returns an empty buffer for the term of the next Send.
func (m *Message) Buffer() []byte {
	if m.later {
		return make([]byte, 0, m.size)
	}
	return slices.Grow(m.conn.scratch[:0], m.size)
}

// Send sends a term to a process: to its alias if alias is not nil and the peer supports
// aliases, otherwise to a pid, an alias or {Name, Node}. The term is written once all frames that
// have arrived are handled.
func (m *Message) Send(to, alias, term []byte) {
	c, a := m.conn, answer{to, alias, m.token, term, m.conn}
	if string(nodeOf(to)) == c.peer.Name || !c.forward(a) {
		c.sendHere(a)
	}
	if m.later {
		c.out.poke()
		c.answered(m.began, 1)
		return
	}
	c.calls.answered++
	if cap(term) <= fullOutput && c.kept.resize(cap(term)) { // for the next Send
		c.scratch = term
	}
}

// Later calls f on another goroutine once fewer than maxSpawned functions run for the peer,
// unless the connection ends first. f may use terms decoded from the message, but not its
// bytes. Further requests from the same process to the same server wait until f returns. If
// memory is short, Later calls f immediately, and Grow returns false when f calls it.
func (m *Message) Later(f func(*Message)) {
	if m.later {
		f(m)
		return
	}
	c, taken, err := m.conn, m.taken, error(nil)
	if m.taken = 0; taken == 0 {
		taken, err = c.weigh(m.term, 0)
	}
	later := &Message{conn: c, to: m.to, token: m.token, later: true, began: m.began}
	serve := func() {
		defer later.release()
		f(later)
	}
	if err != nil || !c.spawnInOrder(queueKey(m.to, m.term), serve, taken) {
		m.refuse = true
		f(m)
	}
}

// largeAnswers limits the large answers that readers build at the same time to one per processor.
// More would not be finished any sooner, but would use so much memory that garbage collection would
// delay all callers.
var largeAnswers = make(chan struct{}, runtime.GOMAXPROCS(0))

// Grow makes room for a term of up to size bytes in the next Buffer. If the term is large, Grow may
// wait. On the reader, it waits for other readers that build large terms. In a function passed to
// [Message.Later], it waits for room, and until the peer's earlier large terms are written. Grow
// returns false if the connections held too much memory throughout roomTime, or if this connection
// has ended.
func (m *Message) Grow(size int) bool {
	c := m.conn
	if m.refuse || c.ctx.Err() != nil {
		return false
	}
	m.release()
	switch {
	case m.later && size > ownLarge:
		if m.undo = c.takeLarge(size); m.undo == nil {
			return false
		}
	case !m.later && size > largeFrame:
		largeAnswers <- struct{}{}
		m.undo = func() { <-largeAnswers }
	}
	m.size = size
	return true
}

// release undoes Grow, once the term is written.
func (m *Message) release() {
	if m.undo != nil {
		m.undo()
		m.undo = nil
	}
}

// takeLarge waits until a large term of up to size bytes may be built. It returns a function to
// call once the term is built, or nil if the term may not be built. Only one large term at a time
// may delay a connection's other output.
func (c *Conn) takeLarge(size int) (undo func()) {
	select {
	case c.large <- struct{}{}:
	case <-c.ctx.Done():
		return nil
	}
	// The term uses memory while it is built, and again while it waits to be written.
	if !c.awaitRoom(2 * size) {
		<-c.large
		return nil
	}
	c.out.allow(size)
	return func() {
		c.out.flush()
		c.out.allow(-size)
		c.memory.give(2 * size)
		<-c.large
	}
}

// awaitRoom takes n bytes from the pool and reports whether there was room within roomTime.
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
	// roomTime is how long a large answer waits for room. Memory that other connections hold for
	// all that time counts as long held, so those connections can be ended to make room.
	roomTime  = 2 * longHeld
	roomPause = 20 * time.Millisecond
)

// sendHere sends an answer to the peer, even if the process belongs to another node.
func (c *Conn) sendHere(a answer) {
	if !c.reaches(a.to) {
		return
	}
	c.out.add(a.size(), func(b []byte) []byte { return c.appendAnswer(b, a) })
}

// reaches reports whether a message to a process can be sent to the peer. Any pid can, because some
// peers put another node's name in their pids.
func (c *Conn) reaches(to []byte) bool {
	switch tag := etf.Tag(to[0]); {
	case tag.IsPid():
		return true
	case tag.IsRef():
		return c.peer.Flags.Has(handshake.Alias)
	}
	return string(nodeOf(to)) == c.peer.Name
}

// appendAnswer appends the control message and the answer. The first element of SEND is unused, but
// some peers check that it is the empty atom.
func (c *Conn) appendAnswer(b []byte, a answer) []byte {
	elements, op, traced, to := 3, wire.OpSend, wire.OpSendTT, a.to
	if a.alias != nil && c.peer.Flags.Has(handshake.Alias) {
		to = a.alias
	}
	tag := etf.Tag(to[0])
	switch {
	case tag.IsRef():
		op, traced = wire.OpAliasSend, wire.OpAliasSendTT
	case !tag.IsPid():
		elements, op, traced = 4, wire.OpRegSend, wire.OpRegSendTT
		r := etf.NewReader(to)
		r.Tuple()
		to = r.Raw()
	}
	if a.token != nil {
		elements, op = elements+1, traced
	}
	b = etf.AppendInt(etf.AppendTupleHeader(b, elements), int64(op))
	if !tag.IsPid() {
		b = append(b, c.self...)
	}
	if !tag.IsRef() {
		b = etf.MustAppendAtom(b, "", c.caps)
	}
	b = append(append(append(b, to...), a.token...), etf.VersionMagic)
	return append(b, a.message...)
}

// nodeOf returns the name of the node in a pid, a reference or {Name, Node}.
func nodeOf(to []byte) []byte {
	const refHeader = 3 // tag and length, before the node
	switch tag := etf.Tag(to[0]); {
	case tag.IsPid(), tag == etf.ReferenceExt: // after the tag, every form of pid begins with the node
		to = to[1:]
	case tag.IsRef():
		to = to[refHeader:]
	default:
		r := etf.NewReader(to)
		r.Tuple()
		r.Raw()
		to = r.Rest()
	}
	r := etf.NewReader(to)
	return r.Atom()
}

func (c *Conn) sendControl(o wire.Op, args ...[]byte) { c.sendTerms(o, 1+len(args), args...) }

// sendTerms is like sendControl, but each of the terms may contain several elements.
func (c *Conn) sendTerms(o wire.Op, elements int, terms ...[]byte) {
	c.out.add(0, func(b []byte) []byte {
		b = etf.AppendInt(etf.AppendTupleHeader(b, elements), int64(o))
		for _, t := range terms {
			b = append(b, t...)
		}
		return b
	})
}

// encode returns the pid of a local process in a form that the peer can read. The upper 32 bits of
// id are the serial of the pid.
func (c *Conn) encode(id uint64) []byte {
	p := etf.NewPid(etf.Atom(c.proto.Node), uint32(id), uint32(id>>32), c.proto.Creation)
	b, _ := etf.Append(nil, p, c.caps) // cannot fail with a node name that passed the handshake
	return b
}

func (c *Conn) atom(text string) []byte { return etf.MustAppendAtom(nil, etf.Atom(text), c.caps) }
