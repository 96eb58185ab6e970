package dist

import (
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Buffer gives an empty buffer to build a message for Answer in. It belongs to
// a Handler, until it returns.
func (c *Conn) Buffer() []byte { return c.scratch[:0] }

// Answer sends a message to a process of the peer: to its alias, if there is one
// and the peer knows aliases, else to its pid. All are terms. Only a Handler, on
// the goroutine that called it, may call this. The message is written when all
// that has arrived is handled.
func (c *Conn) Answer(pid, alias, message []byte) {
	c.send(pid, alias, message)
	if cap(message) <= fullOutput {
		c.scratch = message
	}
}

// AnswerAll is Answer to one pid for n messages of one size, which stand one after
// the other.
func (c *Conn) AnswerAll(pid, messages []byte, n int) {
	size := len(messages) / n
	if c.forwarded(pid) != nil {
		for i := range n {
			c.Post(pid, nil, messages[i*size:(i+1)*size])
		}
	} else {
		c.out.endAll(c.beginMessage(opSend, nil, pid), messages, size)
	}
	if cap(messages) <= fullOutput {
		c.scratch = messages
	}
}

// Post is Answer for any other goroutine, at any time.
func (c *Conn) Post(pid, alias, message []byte) {
	c.send(pid, alias, message)
	c.out.poke()
}

// forwarded gives the connection to the node of a process, nil if that is the
// peer or not connected: one that passed a call on for another is not whom the
// answer is for.
func (c *Conn) forwarded(pid []byte) *Conn {
	node := nodeOf(pid)
	if string(node) == c.peer.Name || c.proto.Connection == nil {
		return nil
	}
	if other := c.proto.Connection(string(node)); other != c {
		return other
	}
	return nil
}

func (c *Conn) send(pid, alias, message []byte) {
	if other := c.forwarded(pid); other != nil {
		other.Post(pid, alias, message)
		return
	}
	o, first, second := opSend, []byte(nil), pid
	if alias != nil && c.peer.Flags.Has(handshake.Alias) {
		o, first, second = opAliasSend, c.self, alias
	}
	c.out.end(append(c.beginMessage(o, first, second), message...))
}

// nodeOf is the name of the node that a pid is of.
func nodeOf(pid []byte) []byte {
	r := etf.NewReader(pid[1:]) // past the tag, all forms of a pid begin with the node
	return r.Atom()
}

// beginMessage opens a frame {op, first, second} and begins its message. The
// second element of a send is not used; peers that look expect the empty atom.
func (c *Conn) beginMessage(o op, first, second []byte) []byte {
	b := etf.AppendTupleHeader(c.out.begin(), 3)
	b = etf.AppendInt(b, int64(o))
	if first == nil {
		b = etf.MustAppendAtom(b, "", c.caps)
	}
	b = append(b, first...)
	b = append(b, second...)
	return append(b, etf.VersionMagic)
}

// sendControl sends a control message of terms.
func (c *Conn) sendControl(o op, args ...[]byte) {
	b := etf.AppendTupleHeader(c.out.begin(), 1+len(args))
	b = etf.AppendInt(b, int64(o))
	for _, a := range args {
		b = append(b, a...)
	}
	c.out.end(b)
}

func (c *Conn) sendMonitorExit(item, to, ref []byte, reason string) {
	c.sendControl(opMonitorPExit, item, to, ref, c.atom(reason))
}

func (c *Conn) sendExit(from, to []byte, reason string) {
	c.sendControl(opExit, from, to, c.atom(reason))
}

func (c *Conn) atom(text string) []byte { return etf.MustAppendAtom(nil, etf.Atom(text), c.caps) }
