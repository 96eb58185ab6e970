package distribution

import (
	"testing"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

// An answer is sent to the alias, if the call has one and the peer supports aliases.
func TestAnswer(t *testing.T) {
	hello := external(etf.Atom("hello"))
	self := etf.NewPid(here, 1, 0, creation)
	for name, test := range map[string]struct {
		flags handshake.Flags
		alias []byte
		want  []byte
	}{
		"alias":    {flags, []byte(ref5), frame(etf.Tuple{number(wire.OpAliasSend), self, ref5}, hello)},
		"no alias": {flags, nil, frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), theirs}, hello)},
		"no alias flag": {flags &^ handshake.Alias, []byte(ref5),
			frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), theirs}, hello)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.flags, func(t *testing.T, r *rig) {
				r.local.flake.receive = func(c *Message) error {
					c.Send([]byte(theirs), test.alias, append(c.Buffer(), hello...))
					return nil
				}
				call := frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, hello)
				r.send(call, call)
				r.want(test.want, test.want)
			})
		})
	}
}

// An old peer is not sent tags that it does not support.
func TestOldPeer(t *testing.T) {
	const (
		head       = "\x70\x83h"
		their      = "g\x64\x00\x0epeer@127.0.0.1\x00\x00\x00\x09\x00\x00\x00\x00\x01"
		ref        = "r\x00\x03\x64\x00\x0epeer@127.0.0.1\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
		ourSmall   = "gs\x0fflake@127.0.0.1\x00\x00\x03\xe9\x00\x00\x00\x00\xf2"
		ourAtomExt = "gd\x00\x0fflake@127.0.0.1\x00\x00\x03\xe9\x00\x00\x00\x00\xf2"
	)
	for name, test := range map[string]struct {
		flags                   handshake.Flags
		empty, noproc, box, our string
	}{
		"Scalang": {scalang, "s\x00", "s\x06noproc", "s\x03box", ourSmall},
		"older":   {scalang &^ handshake.SmallAtomTags, "d\x00\x00", "d\x00\x06noproc", "d\x00\x03box", ourAtomExt},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.flags, func(t *testing.T, r *rig) {
				raw := func(s string) []byte { return append([]byte{0, 0, 0, byte(len(s))}, s...) }
				r.send(raw(head + "\x04a\x13" + their + "d\x00\x06nosuch" + ref))
				r.want(raw(head + "\x05a\x15d\x00\x06nosuch" + their + ref + test.noproc))

				r.local.flake.receive = func(c *Message) error {
					c.Send([]byte(their), []byte(ref), append(c.Buffer(), "a\x01"...))
					return nil
				}
				r.send(raw(head + "\x04a\x06" + their + test.empty + "d\x00\x05flake\x83a\x01"))
				r.want(raw(head + "\x03a\x02" + test.empty + their + "\x83a\x01"))

				r.send(raw(head + "\x03a\x01" + their + test.our)) // a link
				r.end(ourID, "box")
				r.want(raw(head + "\x04a\x03" + test.our + their + test.box))
			})
		})
	}
}

// An answer can be sent to a name or an alias of a peer's process, but not to a name on another node,
// and not to an alias if the peer has none.
func TestSendTo(t *testing.T) {
	name := func(node etf.Atom) etf.Term { return etf.Tuple{etf.Atom("me"), node} }
	empty := etf.Atom("")
	token := etf.Tuple{int64(1), int64(17), int64(8), ours, int64(7)}
	for what, test := range map[string]struct {
		flags     handshake.Flags
		to, token etf.Term
		control   etf.Tuple // nil: nothing is sent
	}{
		"name": {flags, name(there), nil, etf.Tuple{number(wire.OpRegSend), self1, empty, etf.Atom("me")}},
		"name, traced": {flags, name(there), token,
			etf.Tuple{number(wire.OpRegSendTT), self1, empty, etf.Atom("me"), token}},
		"name elsewhere":  {flags, name("other@h"), nil, nil},
		"name here":       {flags, name(here), nil, nil},
		"alias":           {flags, ref5, nil, etf.Tuple{number(wire.OpAliasSend), self1, ref5}},
		"alias, traced":   {flags, ref5, token, etf.Tuple{number(wire.OpAliasSendTT), self1, ref5, token}},
		"alias, old peer": {scalang &^ handshake.Alias, ref5, nil, nil},
		"oldest reference": {flags, etf.Ref("ed\x00\x0epeer@127.0.0.1\x00\x00\x00\x07\x01"), nil,
			etf.Tuple{number(wire.OpAliasSend), self1, etf.Ref("ed\x00\x0epeer@127.0.0.1\x00\x00\x00\x07\x01")}},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, test.flags, func(t *testing.T, r *rig) {
				m := &Message{conn: r.conn, later: true}
				if test.token != nil {
					m.token = external(test.token)
				}
				m.Send(external(test.to), nil, external(etf.Atom("ok")))
				if test.control == nil {
					r.want()
				} else {
					r.want(frame(test.control, external(etf.Atom("ok"))))
				}
			})
		})
	}
}

// self1 is the sender in fields that the protocol ignores.
var self1 = etf.NewPid(here, 1, 0, creation)
