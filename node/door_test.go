package node

import (
	"net"
	"testing"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/handshake"
)

// A session that Ergo does not ask for is closed and forgotten.
func TestDoorNotTaken(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(doorHost, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	d := newDoor(handshake.Options{}, nil)
	d.open(uint16(l.Addr().(*net.TCPAddr).Port))
	ours, theirs := net.Pipe()
	if err := d.pass(dist.Session{Conn: ours}); err == nil {
		t.Error("passed")
	}
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("not closed")
	}
	if len(d.waiting) > 0 {
		t.Errorf("%d sessions wait", len(d.waiting))
	}
}
