package dist

import (
	"fmt"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

func (c *Conn) send(a answer) {
	if !c.elsewhere(a.pid) || !c.forward(a) {
		c.sendHere(a)
	}
}

// sendHere sends an answer to the peer, even if the process belongs to another node.
func (c *Conn) sendHere(a answer) { c.out.end(c.appendAnswer(c.out.beginWith(a.size()), a)) }

func (c *Conn) appendAnswer(b []byte, a answer) []byte {
	o, first, second := wire.OpSend, []byte(nil), a.pid
	if a.alias != nil && c.peer.Flags.Has(handshake.Alias) {
		o, first, second = wire.OpAliasSend, c.self, a.alias
	}
	return append(c.appendHead(b, o, first, second, a.token), a.message...)
}

// nodeOf returns the name of a pid's node.
func nodeOf(pid []byte) []byte {
	r := etf.NewReader(pid[1:]) // after the tag, every form of pid begins with the node
	return r.Atom()
}

// appendHead appends {op, first, second} and the version byte of the message. Unless token
// is nil, it appends the token too, and uses the operation that carries one. A nil first
// becomes the empty atom: SEND does not use it, but peers that check it expect that.
func (c *Conn) appendHead(b []byte, o wire.Op, first, second, token []byte) []byte {
	elements := 3
	if token != nil {
		elements, o = 4, traced[o]
	}
	b = etf.AppendTupleHeader(b, elements)
	b = etf.AppendInt(b, int64(o))
	if first == nil {
		b = etf.MustAppendAtom(b, "", c.caps)
	}
	b = append(b, first...)
	b = append(append(b, second...), token...)
	return append(b, etf.VersionMagic)
}

// traced maps operations to those that carry a trace token too.
var traced = map[wire.Op]wire.Op{wire.OpSend: wire.OpSendTT, wire.OpAliasSend: wire.OpAliasSendTT}

// sendControl sends a control message without a payload.
func (c *Conn) sendControl(o wire.Op, args ...[]byte) {
	b := etf.AppendTupleHeader(c.out.begin(), 1+len(args))
	b = etf.AppendInt(b, int64(o))
	for _, a := range args {
		b = append(b, a...)
	}
	c.out.end(b)
}

func (c *Conn) sendMonitorExit(item, to, ref []byte, reason string) {
	c.sendControl(wire.OpMonitorPExit, item, to, ref, c.atom(reason))
}

func (c *Conn) sendExit(from, to []byte, reason string) {
	c.sendControl(wire.OpExit, from, to, c.atom(reason))
}

// encode returns a local pid in a form that the peer can read.
func (c *Conn) encode(p etf.Pid) []byte {
	b, err := etf.Append(nil, p, c.caps)
	if err != nil {
		panic(fmt.Sprintf("dist: %v", err)) // cannot fail with a node name that passed the handshake
	}
	return b
}

func (c *Conn) atom(text string) []byte { return etf.MustAppendAtom(nil, etf.Atom(text), c.caps) }
