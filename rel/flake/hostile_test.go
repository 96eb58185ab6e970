package main

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/flake-go/flake/node/handshake"
)

// Whatever others do meanwhile, an Erlang node is served.
func TestHostile(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	var silent []net.Conn
	for range 200 {
		silent = append(silent, dial(t, n.addr))
	}
	checks := []string{"ping", "terms", "concurrent", "pipelined", "monitors", "get"}
	caller := spawnErl(t, n.port, nil, checks...)

	random := rand.New(rand.NewPCG(1, 2))
	noise := func(size int) []byte {
		b := make([]byte, random.IntN(size))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	name := handshake.Name{Version: 6, Flags: handshake.Offered, Creation: 1, Node: "half@127.0.0.1"}.Append([]byte{0, 0})
	binary.BigEndian.PutUint16(name, uint16(len(name)-2))
	for range 100 {
		c := dial(t, n.addr)
		c.Write(noise(100))
		hangUp(t, c)

		c = dial(t, n.addr)
		c.Write(name[:random.IntN(len(name)+1)])
		hangUp(t, c)

		c = dialAs(t, n.addr, "noise@127.0.0.1")
		for range 10 {
			frame := append([]byte{0, 0, 0, 0, 112, 131}, noise(1000)...)
			binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
			c.Write(frame)
		}
		c.Write(noise(1000)) // most likely the start of a frame that is too long
		hangUp(t, c)
	}
	wantChecks(t, caller, checks...)
	for _, c := range silent {
		untilClosed(t, c)
	}
}

// A caller that died without a word has left a connection behind. When it comes
// back it gets in at once.
func TestComeBack(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	left := dialAs(t, n.addr, "caller@127.0.0.1")
	n.erl(nil, "ping", "get")
	untilClosed(t, left)
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// dialAs connects as a node of that name.
func dialAs(t *testing.T, addr, name string) net.Conn {
	t.Helper()
	c := dial(t, addr)
	if _, err := handshake.Start(c, nodeName, handshake.Options{Node: name, Creation: 1, Cookie: cookie}); err != nil {
		t.Fatal(err)
	}
	return c
}

// hangUp ends a connection and waits until the node is done with it.
func hangUp(t *testing.T, c net.Conn) {
	t.Helper()
	c.(*net.TCPConn).CloseWrite()
	untilClosed(t, c)
}

func untilClosed(t *testing.T, c net.Conn) {
	t.Helper()
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("%s: not closed by the node", c.LocalAddr())
	}
	c.Close()
}
