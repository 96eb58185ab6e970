package dist

import (
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// BeginSend opens a message to a process of the peer: to its alias, if there is
// one and the peer knows aliases, else to its pid. Both are terms as they came.
// The message's term is to be appended to the buffer that it gives; EndSend
// or DropSend must follow, and nothing else may be sent in between. Only a Handler, on the
// goroutine that called it, may call these three.
func (c *Conn) BeginSend(pid, alias []byte) []byte {
	c.sending = true
	if alias != nil && c.peer.Flags.Has(handshake.Alias) {
		return c.beginMessage(opAliasSend, c.self, alias)
	}
	return c.beginMessage(opSend, nil, pid)
}

// EndSend sends the message whose term was appended to what BeginSend gave. It
// is written when the reader has handled all that has arrived.
func (c *Conn) EndSend(buf []byte) {
	c.sending = false
	c.out.end(buf)
}

// DropSend forgets the message that BeginSend opened.
func (c *Conn) DropSend() {
	c.sending = false
	c.out.drop()
}

// beginMessage opens a frame {op, first, second} and begins its message. The
// second element of a send is not used; peers that look expect ”.
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
