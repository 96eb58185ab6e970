package node

import (
	"net"
	"sync"

	"github.com/flake-go/flake/node/handshake"
)

// meetings are the handshakes under way, by the other node's name. When two nodes
// dial each other at once, both keep the dial of the node with the greater name, as
// OTP's net_kernel does.
type meetings struct {
	mu      sync.Mutex
	changed sync.Cond
	dials   map[string]*meeting // ours; of several to one node, the last
	greeted map[string]int      // those of others that may go on
}

// meeting is a dial of ours.
type meeting struct {
	conn    net.Conn
	yielded bool
	up      chan struct{} // closed once the node is connected
}

func newMeetings() *meetings {
	m := &meetings{dials: make(map[string]*meeting), greeted: make(map[string]int)}
	m.changed.L = &m.mu
	return m
}

// begin records a dial until end is called.
func (m *meetings) begin(peer string, c net.Conn) (d *meeting, end func()) {
	d = &meeting{conn: c, up: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials[peer] = d
	return d, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.dials[peer] == d {
			delete(m.dials, peer)
		}
	}
}

// greet returns what to tell a node that dials us: StatusOK unless we dial it. If
// the node may go on, done must be called at the end of its handshake.
func (m *meetings) greet(self, peer string) handshake.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	status := handshake.StatusOK
	if d := m.dials[peer]; d != nil && !d.yielded {
		if self > peer {
			return handshake.StatusNOK
		}
		d.yielded = true
		d.conn.Close()
		status = handshake.StatusOKSimultaneous
	}
	m.greeted[peer]++
	return status
}

// done ends a handshake that greet let go on; it must not be called for another.
func (m *meetings) done(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.greeted[peer]--; m.greeted[peer] <= 0 {
		delete(m.greeted, peer)
	}
	m.changed.Broadcast()
}

// up records that a node is connected.
func (m *meetings) up(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.dials[peer]; d != nil {
		close(d.up)
		delete(m.dials, peer)
	}
}

// hasYielded reports whether the node dialed us and that dial replaces ours.
func (m *meetings) hasYielded(d *meeting) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return d.yielded
}

// awaitGreeted waits until no handshake with a node that dialed us is under way.
// Each has a deadline.
func (m *meetings) awaitGreeted(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.greeted[peer] > 0 {
		m.changed.Wait()
	}
}
