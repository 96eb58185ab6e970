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

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/latency"
)

// Traffic counts the node's traffic with other nodes since it started.
type Traffic struct {
	Connections       int               // current connections
	Connected         uint64            // current and past connections
	Received, Sent    uint64            // bytes on all of these
	HandshakeFailures map[string]uint64 // failed handshakes with nodes that dialed us, by reason
	Closes            map[string]uint64 // connections closed because of peer behavior, by reason
	Latency           latency.Counts    // how long calls took
}

// Peer is a connected node.
type Peer struct {
	Name    string
	Address net.Addr
	Since   time.Time
	IDs     uint64 // number of ids sent to it since Since
}

// Traffic returns the traffic of all connections.
func (n *Node) Traffic() Traffic {
	t := newHistory().Traffic
	t.Latency = n.proto.Latency()
	n.history.mu.Lock()
	defer n.history.mu.Unlock()
	h := &n.history.Traffic
	maps.Copy(t.HandshakeFailures, h.HandshakeFailures)
	maps.Copy(t.Closes, h.Closes)
	t.Connected, t.Received, t.Sent = h.Connected, h.Received, h.Sent
	for _, c := range n.conns.Range {
		t.add(c.(*distribution.Conn))
		t.Connections++
	}
	return t
}

// Connections returns the number of connected nodes.
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

func (t *Traffic) add(c *distribution.Conn) {
	in, out := c.Octets()
	t.Connected++
	t.Received += in
	t.Sent += out
}

// history holds the traffic of ended connections and failed handshakes.
type history struct {
	// mu guards Traffic. Code that holds it must not allocate: an allocation may wait for the garbage
	// collector, and all connections that start or end would then wait too.
	mu sync.Mutex
	Traffic
}

// reasons bounds the number of different reasons in each map.
const reasons = 16

func newHistory() *history {
	return &history{Traffic: Traffic{
		HandshakeFailures: make(map[string]uint64, reasons), Closes: make(map[string]uint64, reasons),
	}}
}

// down adds a connection that has ended. blame is the reason if the peer is to blame, otherwise it
// is empty. down also calls forget, which removes the connection from the current ones. It does
// both under mu, so that Traffic counts the connection only once.
func (h *history) down(c *distribution.Conn, blame string, forget func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	forget()
	h.add(c)
	if blame != "" {
		h.Closes[blame]++
	}
}

func (h *history) failed(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.HandshakeFailures[reason]++
}

// Why handshakes are broken off.
const (
	failedMany  = "too_many_handshakes"
	failedAgain = "came_again" // a later applicant under its name arrived before it was connected
)

// failureOf returns the reason, in one word, for the error that ended a handshake.
func failureOf(err error) string {
	for _, known := range []struct {
		err  error
		word string
	}{
		{errFault, "fault"}, // a panic in this node
		{handshake.ErrCookie, "wrong_cookie"},
		{handshake.ErrRefused, "refused"}, // the name is our own, or that of a node that we are dialing
		{os.ErrDeadlineExceeded, "timeout"},
		{errTLS, "tls"},
		{io.EOF, "hung_up"},
		{io.ErrUnexpectedEOF, "hung_up"},
		{syscall.ECONNRESET, "hung_up"},
		{errFull, "too_many_connections"},
		{errHostFull, "too_many_connections"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return "malformed"
}
