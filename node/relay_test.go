package node

import (
	"errors"
	"net"
	"testing"

	"github.com/flake-go/flake/node/handshake"
)

// say sends a message of a handshake.
func say(t *testing.T, c net.Conn, m interface{ Append([]byte) []byte }) {
	t.Helper()
	b := m.Append([]byte{0, 0})
	b[0], b[1] = byte((len(b)-2)>>8), byte(len(b)-2)
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// Somebody without the cookie, at an address that the node dials, poses it the challenge that
// it has on another connection, and is let in on neither.
func TestRelayedChallenge(t *testing.T) {
	d := startDialled(t, "b")
	outcome := d.connect()
	out := d.take()
	readFrame(t, out, 2)
	in := dialRaw(t, d.node)
	say(t, in, handshake.Name{Version: 6, Flags: handshake.Offered, Creation: 1, Node: "thief@127.0.0.1"})
	readFrame(t, in, 2)
	var posed handshake.Challenge
	if err := posed.Decode(readFrame(t, in, 2)[2:]); err != nil {
		t.Fatal(err)
	}
	say(t, out, handshake.StatusOK)
	posed.Node = d.name
	say(t, out, posed)
	if n, _ := out.Read(make([]byte, 1)); n > 0 {
		t.Fatal("answered")
	}
	if err := <-outcome; !errors.Is(err, handshake.ErrOwnChallenge) {
		t.Errorf("dialed: %v", err)
	}
	if n := len(d.node.connections()); n != 0 {
		t.Errorf("%d connections", n)
	}
}
