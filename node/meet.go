package node

import (
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flake-go/flake/node/handshake"
)

// meetings holds the current handshakes, by the other node's name. If two nodes dial each
// other at the same time, both keep the dial of the node with the greater name, as OTP's
// net_kernel does.
type meetings struct {
	mu      sync.Mutex          // guards dials and greeted
	changed sync.Cond           // signaled when greeted changes
	dials   map[string]*meeting // our dials; the latest to each node
	greeted map[string]int      // number of admitted dials from other nodes
}

// meeting is a dial by this node.
type meeting struct {
	conn    net.Conn
	yielded atomic.Bool
	up      chan struct{} // closed when the node is connected
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

// greet returns the status for a node that dials us: StatusOK unless we dial it too. If the
// status is not StatusNOK, the caller must call done at the end of the handshake.
func (m *meetings) greet(self, peer string) handshake.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	status := handshake.StatusOK
	if d := m.dials[peer]; d != nil && !d.yielded.Load() {
		if self > peer {
			return handshake.StatusNOK
		}
		d.yielded.Store(true)
		d.conn.Close()
		status = handshake.StatusOKSimultaneous
	}
	m.greeted[peer]++
	return status
}

// done ends a handshake that greet admitted. It must not be called for any other handshake.
func (m *meetings) done(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.greeted[peer]--; m.greeted[peer] <= 0 {
		delete(m.greeted, peer)
	}
	m.changed.Broadcast()
}

func (m *meetings) up(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.dials[peer]; d != nil {
		close(d.up)
		delete(m.dials, peer)
	}
}

// awaitGreeted waits until the handshakes with a node that dialed us have ended. Each has
// a deadline.
func (m *meetings) awaitGreeted(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.greeted[peer] > 0 {
		m.changed.Wait()
	}
}

// names holds the names that peers without a name had, and that are free. As in OTP, such a name is assigned to
// another peer on the same host, with a new creation, because peers never free the atom of a name.
type names struct {
	mu   sync.Mutex // guards free
	free []freeName // at most keptNames, the most recent last
}

const keptNames = 4096

type freeName struct {
	node     string
	creation uint32
}

// assign returns a name at host that no other peer has.
func (n *names) assign(host string, taken func(node string) bool) (node string, creation uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range slices.Backward(n.free) {
		if strings.HasSuffix(f.node, "@"+host) && !taken(f.node) {
			n.free = slices.Delete(n.free, i, i+1)
			return f.node, f.creation
		}
	}
	return handshake.NewName(host)
}

// takeBack frees the name of a peer, if it was assigned.
func (n *names) takeBack(p handshake.Peer) {
	if !p.Assigned {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.free) >= keptNames {
		n.free = slices.Delete(n.free, 0, 1)
	}
	n.free = append(n.free, freeName{p.Name, max(p.Creation+1, 1)})
}
