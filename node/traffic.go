package node

import (
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/latency"
)

// Traffic counts the node's dealings with other nodes since its start.
type Traffic struct {
	Connections       int               // now
	Connected         uint64            // connections since the start
	Received, Sent    uint64            // bytes, of all connections
	HandshakeFailures map[string]uint64 // of those who dialed us, by reason
	Closes            map[string]uint64 // connections that the peer's conduct ended, by reason
	Latency           latency.Counts    // of the answers to calls
}

// Peer is a connected node.
type Peer struct {
	Name    string
	Address net.Addr
	Since   time.Time
	IDs     uint64 // that it has taken since
}

// Traffic adds up the counts of the connections.
func (n *Node) Traffic() Traffic {
	t := newPast().Traffic
	n.sumTo(&t)
	t.Latency = n.proto.Latency()
	return t
}

func (n *Node) sumTo(t *Traffic) {
	n.past.mu.Lock()
	defer n.past.mu.Unlock()
	n.past.copyTo(t)
	for _, c := range n.conns.Range {
		t.add(c.(*dist.Conn))
		t.Connections++
	}
}

// Connections returns how many nodes are connected.
func (n *Node) Connections() int { return len(n.connections()) }

// Peers returns the connected nodes.
func (n *Node) Peers() []Peer {
	conns := n.connections()
	peers := make([]Peer, len(conns))
	for i, c := range conns {
		peers[i] = Peer{c.Peer().Name, c.Addr(), c.Since(), c.Given()}
	}
	return peers
}

func (t *Traffic) add(c *dist.Conn) {
	in, out := c.Octets()
	t.Connected++
	t.Received += in
	t.Sent += out
}

// past is the traffic of ended connections and handshakes.
type past struct {
	// Nothing allocates under mu: an allocation may wait for the garbage collector, and
	// everybody who comes or goes would wait too.
	mu sync.Mutex
	Traffic
}

// reasons is how many reasons there may be.
const reasons = 16

func newPast() *past {
	return &past{Traffic: Traffic{
		HandshakeFailures: make(map[string]uint64, reasons), Closes: make(map[string]uint64, reasons),
	}}
}

// copyTo copies to t, which has room. The caller holds mu.
func (p *past) copyTo(t *Traffic) {
	maps.Copy(t.HandshakeFailures, p.HandshakeFailures)
	maps.Copy(t.Closes, p.Closes)
	t.Connected, t.Received, t.Sent = p.Connected, p.Received, p.Sent
}

// down counts a connection that has ended, and has it forgotten: in one, so that it always
// counts once.
func (p *past) down(c *dist.Conn, forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	forget()
	p.add(c)
	if e := c.Ending(); e.Hostile() {
		p.Closes[string(e)]++
	}
}

// failed counts a failed handshake.
func (p *past) failed(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.HandshakeFailures[reason]++
}

// Reasons for a failed handshake.
const (
	failedCookie    = "wrong_cookie"
	failedRefused   = "refused" // by us: our own name, or one that is about to connect
	failedTLS       = "tls"
	failedTime      = "timeout"
	failedHungUp    = "hung_up"
	failedMalformed = "malformed"
	failedMany      = "too_many_handshakes"
	failedAgain     = "came_again" // before the earlier one of its name was in
	failedFull      = "too_many_connections"
	failedFault     = "fault" // ours
)

// failureOf returns the word for the error that ended a handshake.
func failureOf(err error) string {
	for _, known := range []struct {
		err  error
		word string
	}{
		{errFault, failedFault},
		{handshake.ErrCookie, failedCookie},
		{handshake.ErrRefused, failedRefused},
		{os.ErrDeadlineExceeded, failedTime},
		{errTLS, failedTLS},
		{io.EOF, failedHungUp},
		{io.ErrUnexpectedEOF, failedHungUp},
		{syscall.ECONNRESET, failedHungUp},
		{errFull, failedFull},
		{errHostFull, failedFull},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return failedMalformed
}
