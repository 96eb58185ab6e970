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

// Post is Answer for any other goroutine, at any time.
func (c *Conn) Post(pid, alias, message []byte) {
	c.send(pid, alias, message)
	c.out.poke()
}

func (c *Conn) send(pid, alias, message []byte) {
	o, first, second := opSend, []byte(nil), pid
	if alias != nil && c.peer.Flags.Has(handshake.Alias) {
		o, first, second = opAliasSend, c.self, alias
	}
	c.out.end(append(c.beginMessage(o, first, second), message...))
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
