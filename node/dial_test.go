package node

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/reserve"
)

// EPMD finds a node that is not connected, and the cookie lets us in.
func TestConnect(t *testing.T) {
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // without epmd
	server := start(t, Options{EPMD: epmd.Auto})
	for cookie, ok := range map[string]bool{cookie: true, "guess": false} {
		n := start(t, Options{Name: cookie + "-caller@127.0.0.1", Cookie: cookie, EPMD: epmd.Auto})
		for range 2 {
			if err := n.Connect(name); (err == nil) != ok {
				t.Errorf("cookie %s: %v", cookie, err)
			}
		}
		if ok {
			await(t, "it is connected, once", func() bool { return server.Connections() == 1 && n.Connections() == 1 })
		}
		if err := n.Connect("nobody@127.0.0.1"); !errors.Is(err, epmd.ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
		n.Stop()
		await(t, "it is gone", func() bool { return server.Connections() == 0 })
	}
}

// When descriptors are few, nobody is dialed.
func TestConnectFewFiles(t *testing.T) {
	d := startDialled(t, "b")
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual)
	few := usual
	few.Cur = reserve.Kept
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	if err := d.node.Connect(d.name); !errors.Is(err, reserve.ErrFew) {
		t.Error(err)
	}
}

// A second connection of a name is not served.
func TestServeOnce(t *testing.T) {
	n := start(t, Options{})
	p := dial(t, n, "a@127.0.0.1")
	p.get()
	ours, theirs := net.Pipe()
	if err := n.serve(dist.Session{Conn: ours, Peer: n.connection("a@127.0.0.1").Peer()}); err == nil {
		t.Error("served")
	}
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("not closed")
	}
	p.get()
}
