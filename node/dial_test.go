package node

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/reserve"
)

// Connect finds a node through EPMD.
func TestConnect(t *testing.T) {
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // without epmd
	server := start(t, Options{Keeper: auto()})
	for cookie, ok := range map[string]bool{cookie: true, "guess": false} {
		n := start(t, Options{Name: cookie + "-caller@127.0.0.1", Cookie: cookie, Keeper: auto()})
		for range 2 {
			if err := n.Connect(name); (err == nil) != ok {
				t.Errorf("cookie %s: Connect returned %v", cookie, err)
			}
		}
		if ok {
			await(t, "they are connected once", func() bool { return server.Connections() == 1 && n.Connections() == 1 })
		}
		if err := n.Connect("nobody@127.0.0.1"); !errors.Is(err, epmd.ErrNotFound) {
			t.Errorf("unknown node: %v", err)
		}
		n.Stop()
		await(t, "the connection has ended", func() bool { return server.Connections() == 0 })
	}
}

// When only reserved descriptors are left, a dial opens no socket, not even to EPMD.
func TestDialFewFiles(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var asked atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			c.Close()
		}
	}()
	n := &Node{ctx: t.Context(), epmd: &epmd.Keeper{Mode: epmd.Mode(l.Addr().String())}}
	if _, err := n.dial("b@127.0.0.1"); err == nil || asked.Load() != 1 {
		t.Errorf("EPMD was asked %d times, want 1; %v", asked.Load(), err)
	}
	reserveAll(t)
	if _, err := n.dial("b@127.0.0.1"); !errors.Is(err, reserve.ErrFew) || asked.Load() != 1 {
		t.Errorf("EPMD was asked %d times, want 1; %v", asked.Load(), err)
	}
}

// reserveAll leaves only the reserved descriptors until the test ends.
func reserveAll(t *testing.T) {
	t.Helper()
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual) })
	few := usual
	few.Cur = reserve.Kept
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
}

// A second connection to the same peer is not served.
func TestServeOnce(t *testing.T) {
	n := start(t, Options{})
	p := dial(t, n, "a@127.0.0.1")
	p.get()
	ours, theirs := net.Pipe()
	if err := n.serve(ours, n.connection("a@127.0.0.1").Peer()); err == nil {
		t.Error("a second connection is served")
	}
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("the second connection is not closed")
	}
	p.get()
}

// accepts reports whether a node with a cookie can connect.
func accepts(t *testing.T, n *Node, cookie string) bool {
	t.Helper()
	c := dialRaw(t, n)
	defer c.Close()
	_, err := handshake.Start(c, n.Name(), handshake.Options{Node: "a@127.0.0.1", Creation: 77, Cookie: cookie})
	if err != nil && !errors.Is(err, handshake.ErrCookie) {
		t.Fatal(err)
	}
	return err == nil
}

// SetCookies changes the cookies of a running node, and does not close connections.
func TestSetCookies(t *testing.T) {
	n := start(t, Options{})
	there := dial(t, n, "there@127.0.0.1")
	there.get()
	for _, step := range []struct {
		current, previous string
		accepted          map[string]bool
	}{
		{"new", cookie, map[string]bool{cookie: true, "new": true, "guess": false, "": false}},
		{"new", "", map[string]bool{cookie: false, "new": true, "": false}},
		{"newer", "", map[string]bool{"new": false, "newer": true}},
	} {
		n.SetCookies(step.current, step.previous)
		for cookie, want := range step.accepted {
			if got := accepts(t, n, cookie); got != want {
				t.Errorf("cookies %s and %q, peer's %q: accepted %t, want %t", step.current, step.previous, cookie, got, want)
			}
		}
	}
	there.get()
}

// A node with two cookies can dial nodes that have only one of them.
func TestConnectWithPreviousCookie(t *testing.T) {
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // without epmd
	n := start(t, Options{Cookie: "new", Previous: "old", Keeper: auto()})
	for has, ok := range map[string]bool{"new": true, "old": true, "other": false} {
		peer := start(t, Options{Name: has + "@127.0.0.1", Cookie: has, Keeper: auto()})
		if err := n.Connect(peer.Name()); (err == nil) != ok || !ok && !errors.Is(err, handshake.ErrCookie) {
			t.Errorf("a node that has %s: %v", has, err)
		}
	}
	n.SetCookies("new", "")
	late := start(t, Options{Name: "late@127.0.0.1", Cookie: "old", Keeper: auto()})
	if err := n.Connect(late.Name()); !errors.Is(err, handshake.ErrCookie) {
		t.Error(err)
	}
}

// A wrong cookie delays its host even if the node accepts two cookies.
func TestPreviousCookieOffends(t *testing.T) {
	n := start(t, Options{Previous: "old"})
	if accepts(t, n, "guess") {
		t.Error("a caller with a wrong cookie is connected")
	}
	await(t, "the host is remembered", func() bool {
		n.gate.mu.Lock()
		defer n.gate.mu.Unlock()
		return len(n.gate.offenders) == 1
	})
}

// SetConnections changes the limits of a running node.
func TestSetConnections(t *testing.T) {
	n := start(t, Options{})
	a := dial(t, n, "a@127.0.0.1")
	a.get()
	n.SetConnections(1, 1)
	dial(t, n, "b@127.0.0.1").ended()
	a.get()
	n.SetConnections(2, 2)
	dial(t, n, "b@127.0.0.1").get()
	a.get()
}

// say sends a handshake message.
func say(t *testing.T, c net.Conn, m interface{ Append([]byte) []byte }) {
	t.Helper()
	b := m.Append([]byte{0, 0})
	b[0], b[1] = byte((len(b)-2)>>8), byte(len(b)-2)
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// A peer without the cookie, at an address that the node dials, relays the challenge that the
// node sent on another connection. The node refuses both connections.
func TestRelayedChallenge(t *testing.T) {
	d := startDialed(t, "b")
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
		t.Fatal("the node answered its own challenge")
	}
	if err := <-outcome; !errors.Is(err, handshake.ErrOwnChallenge) {
		t.Errorf("Connect returned %v, want ErrOwnChallenge", err)
	}
	if n := len(d.node.connections()); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

func TestNetwork(t *testing.T) {
	for _, tt := range []struct{ addr, want string }{
		{"0.0.0.0:0", "tcp4"},
		{"192.0.2.1:4369", "tcp4"},
		{"[::]:0", "tcp"},
		{"[::ffff:192.0.2.1]:0", "tcp"},
		{"localhost:0", "tcp"},
		{":0", "tcp"},
	} {
		if got := Network(tt.addr); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.addr, got, tt.want)
		}
	}
}

// The node listens only on loopback if its host is literally a loopback name or address.
func TestListen(t *testing.T) {
	for _, tt := range []struct {
		host string
		all  bool
	}{
		{"127.0.0.1", false},
		{"127.0.1.1", false},
		{"localhost", false},
		{"LOCALHOST", false},
		{"192.0.2.1", true}, // not an address of this machine
		{"no-such-host.invalid", true},
		{"127.0.0.1.invalid", true},
		{"2001:db8::1", true},
	} {
		l, err := listen(t.Context(), Options{Name: "flake@" + tt.host})
		if err != nil {
			t.Error(err)
			continue
		}
		ip := l.Addr().(*net.TCPAddr).IP
		if ip.IsUnspecified() != tt.all || ip.IsLoopback() == tt.all {
			t.Errorf("%s: listens on %v", tt.host, ip)
		}
		l.Close()
	}
}

// 0.0.0.0 means all IPv4 addresses and no IPv6 address.
func TestListenIPv4(t *testing.T) {
	l, err := listen(t.Context(), Options{Name: "flake@127.0.0.1", Listen: "0.0.0.0:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if addr := l.Addr().(*net.TCPAddr); addr.IP.To4() == nil {
		t.Errorf("listens on %v", addr)
	}
}
