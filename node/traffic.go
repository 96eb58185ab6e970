package node

import (
	"errors"
	"io"
	"maps"
	"os"
	"sync"
	"syscall"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/traffic"
)

// Traffic returns the traffic of all connections.
func (n *Node) Traffic() traffic.Counts {
	t := newHistory().Counts
	t.Latency = n.proto.Latency()
	n.history.mu.Lock()
	defer n.history.mu.Unlock()
	h := &n.history.Counts
	maps.Copy(t.HandshakeFailures, h.HandshakeFailures)
	maps.Copy(t.Closes, h.Closes)
	t.Connected, t.Received, t.Sent = h.Connected, h.Received, h.Sent
	for _, c := range n.conns.Range {
		add(&t, c.(*distribution.Conn))
		t.Connections++
	}
	return t
}

// Connections returns the number of connected nodes.
func (n *Node) Connections() int { return len(n.connections()) }

// Peers returns the connected nodes.
func (n *Node) Peers() []traffic.Peer {
	conns := n.connections()
	peers := make([]traffic.Peer, len(conns))
	for i, c := range conns {
		peers[i] = traffic.Peer{Name: c.Peer().Name, Address: c.Addr(), Since: c.Since(), IDs: c.Given()}
	}
	return peers
}

func add(t *traffic.Counts, c *distribution.Conn) {
	in, out := c.Octets()
	t.Connected++
	t.Received += in
	t.Sent += out
}

// history holds the traffic of ended connections and failed handshakes.
type history struct {
	// mu guards Counts. Code that holds it must not allocate: an allocation may wait for the garbage
	// collector, and all connections that start or end would then wait too.
	mu sync.Mutex
	traffic.Counts
}

// reasons bounds the number of different reasons in each map.
const reasons = 16

func newHistory() *history {
	return &history{Counts: traffic.Counts{
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
	add(&h.Counts, c)
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
