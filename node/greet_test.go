package node

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// stuck is a server that blocks in a cast until release is closed.
type stuck struct {
	genserver.Plain
	taken, release chan struct{}
}

func (stuck) HandleCall(genserver.Call) {}

func (s stuck) HandleCast([]byte, genserver.Caller) {
	s.taken <- struct{}{}
	<-s.release
}

// heldUp returns a node with a connection to a@127.0.0.1 that does not end until release is
// called. setup bounds the node's handshakes.
func heldUp(t *testing.T, setup time.Duration) (n *Node, release func()) {
	t.Helper()
	s := stuck{taken: make(chan struct{}), release: make(chan struct{})}
	release = func() { close(s.release) }
	n = start(t, Options{setup: setup,
		Supervisors: []Supervisor{{Name: "stuck_sup", Children: []Child{{Name: "stuck", Handler: s}}}}})
	p := dial(t, n, "a@127.0.0.1")
	p.send(regSend(p.pid, "stuck"), etf.Tuple{etf.Atom("$gen_cast"), etf.Atom("x")})
	<-s.taken
	return n, release
}

// atGate returns the number of applicants that are not connected yet.
func atGate(n *Node) int {
	n.gate.mu.Lock()
	defer n.gate.mu.Unlock()
	return len(n.gate.handshakes.All) + len(n.gate.proven)
}

// comeBack connects as a@127.0.0.1, and waits until the applicant is counted at the gate.
func comeBack(t *testing.T, n *Node) *peer {
	t.Helper()
	p := dial(t, n, "a@127.0.0.1")
	await(t, "the caller waits at the gate", func() bool {
		n.gate.mu.Lock()
		defer n.gate.mu.Unlock()
		v := n.gate.proven["a@127.0.0.1"]
		return v != nil && v.conn.RemoteAddr().String() == p.conn.LocalAddr().String()
	})
	return p
}

// If a connection does not end, only the last applicant with its name waits for it and is counted.
// Applicants with other names can connect.
func TestLastOfNameWaits(t *testing.T) {
	n, release := heldUp(t, 0)
	last := comeBack(t, n)
	for range 10 {
		next := comeBack(t, n)
		last.ended()
		last = next
	}
	if got := n.Traffic().HandshakeFailures[failedAgain]; got != 10 {
		t.Errorf("%d applicants were replaced by later ones, want 10", got)
	}
	b := dial(t, n, "b@127.0.0.1")
	if got := b.call("net_kernel", etf.Atom("longnames")); got != "{1,true}" {
		t.Errorf("the caller with another name received %s", got)
	}
	await(t, "only the last caller is counted", func() bool { return atGate(n) == 1 })
	release()
	if got := last.call("net_kernel", etf.Atom("longnames")); got != "{1,true}" {
		t.Errorf("the last caller received %s", got)
	}
	await(t, "no caller is counted any more", func() bool { return atGate(n) == 0 })
}

// An applicant that is broken off does not close the next applicant's connection.
func TestBrokenOffKeepsNext(t *testing.T) {
	n := start(t, Options{})
	n.entering.Lock()
	comeBack(t, n)
	ours, nodes := net.Pipe()
	defer ours.Close()
	next, _ := n.gate.arrive(nodes)
	before, err := n.gate.proved(next, "a@127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	n.breakOff(before, failedAgain)
	n.gate.leave(next)
	err = n.serve(nodes, handshake.Peer{Name: "a@127.0.0.1"})
	n.entering.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	n.meetings.awaitGreeted("a@127.0.0.1")
	if c := n.connection("a@127.0.0.1"); c == nil || c.Context().Err() != nil {
		t.Error("the next caller's connection is closed")
	}
}

// An applicant does not wait forever for the earlier connection under its name to end.
func TestNameWaitEnds(t *testing.T) {
	t.Parallel()
	n, release := heldUp(t, setupTime)
	defer release()
	p := comeBack(t, n)
	p.ended()
	if got := n.Traffic().HandshakeFailures["timeout"]; got != 1 {
		t.Errorf("%d callers timed out, want 1", got)
	}
}

// At the limit on connections, an applicant replaces the peer that has been idle longest, if that
// peer has been idle for idleTime.
func TestIdleReplaced(t *testing.T) {
	n := start(t, Options{})
	setNow := func(now func() time.Time) {
		n.gate.mu.Lock() // the next handshake locks it too
		defer n.gate.mu.Unlock()
		n.gate.now = now
	}
	before := time.Now()
	setNow(func() time.Time { return before })
	idle := dial(t, n, "idle@127.0.0.1")
	await(t, "the idle peer is connected", func() bool { return n.Connections() == 1 })
	busy := dial(t, n, "busy@127.0.0.1")
	busy.get()
	elsewhere := hostAt("192.0.2.1")
	for range MaxConnections - 2 {
		n.gate.up(elsewhere)
	}

	dial(t, n, "early@127.0.0.1").ended()
	if got := n.Traffic().HandshakeFailures["too_many_connections"]; got != 1 {
		t.Errorf("%d callers were refused, want 1", got)
	}
	busy.get()

	setNow(func() time.Time { return time.Now().Add(2 * idleTime) })
	if _, err := n.connToReplace("x@192.0.2.1", &applicant{host: elsewhere}); !errors.Is(err, errHostFull) {
		t.Errorf("another node on a host at its limit: %v, want %v", err, errHostFull)
	}
	late := dial(t, n, "late@127.0.0.1")
	idle.ended()
	late.get()
	busy.get()
}

// If nodes at two addresses have the same name, one warning names both addresses.
func TestRivals(t *testing.T) {
	log := &logged{}
	n := start(t, Options{Log: log.logger()})
	const addresses, turns = 2, 6
	for turn := range turns {
		local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+turn%addresses))}
		c, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", n.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := handshake.Start(c, n.Name(), handshake.Options{Node: "a@127.0.0.1", Cookie: cookie}); err != nil {
			t.Fatal(err)
		}
		await(t, "the caller is connected", func() bool {
			conn := n.connection("a@127.0.0.1")
			return conn != nil && conn.Addr().String() == c.LocalAddr().String()
		})
	}
	const want = "address=127.0.0.2 other=127.0.0.1"
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, want) {
		t.Errorf("want one warning with %s:\n%s", want, got)
	}
}
