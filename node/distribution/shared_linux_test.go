package distribution

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/node/wire"
)

// A fault on a thread that serves several connections ends only the connection that caused it.
func TestFaultShared(t *testing.T) {
	fault, get := external(etf.Atom("fault")), external(etf.Atom("get"))
	r := newRig(t, ticktime)
	r.local.flake.receive = func(m *Message) error {
		if bytes.Equal(m.Term(), fault) {
			panic("fault")
		}
		m.Send([]byte(theirs), nil, m.Term())
		return nil
	}
	send := func(peer net.Conn, message []byte) {
		peer.Write(frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), ours}, message))
	}
	answer := frame(etf.Tuple{number(wire.OpSend), etf.Atom(""), theirs}, get)
	call := func(peer net.Conn) {
		t.Helper()
		send(peer, get)
		got := make([]byte, len(answer))
		if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, answer) {
			t.Fatalf("received %x: %v, want %x", got, err, answer)
		}
	}
	one, other := r.overTCP(), r.overTCP()
	for !bothShared() {
		call(one)
		call(other)
	}
	send(one, fault)
	if n, err := one.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes after the fault: %v, want the connection closed", n, err)
	}
	for range 100 {
		call(other)
	}
}

// bothShared reports whether shared threads read both connections.
func bothShared() bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("node/socket.(*conn).share(")) == 2
}

// overTCP serves another connection, and returns its peer.
func (r *rig) overTCP() (peer net.Conn) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	defer l.Close()
	if peer, err = net.Dial("tcp", l.Addr().String()); err != nil {
		r.t.Fatal(err)
	}
	stream, err := l.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	their := handshake.Peer{Name: there, Creation: 5, Version: 6, Flags: flags}
	c := r.proto.New(r.t.Context(), socket.Adopt(stream), their)
	go r.proto.Serve(c)
	r.t.Cleanup(func() { peer.Close(); <-c.Done() })
	return peer
}
