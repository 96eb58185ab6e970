package node

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/reserve"
)

// meetings are the handshakes under way by the name of the other node. When two
// nodes dial each other at once, both keep the dial of the one whose name is
// the greater, as OTP's net_kernel does.
type meetings struct {
	mu      sync.Mutex
	changed sync.Cond
	dials   map[string]*meeting // ours; of several to one node the last
	greeted map[string]int      // those of others that were let in
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

// begin notes a dial until end is called.
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

// greet tells what to say to a node that dials us, StatusOK unless we dial it.
// If it may go on, done has to be called at the end of its handshake.
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

// done is the end of a handshake that greet let go on, of no other.
func (m *meetings) done(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.greeted[peer]--; m.greeted[peer] <= 0 {
		delete(m.greeted, peer)
	}
	m.changed.Broadcast()
}

// up is told that a node is connected.
func (m *meetings) up(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.dials[peer]; d != nil {
		close(d.up)
		delete(m.dials, peer)
	}
}

// hasYielded reports whether a node that dialled us goes on in place of the dial.
func (m *meetings) hasYielded(d *meeting) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return d.yielded
}

// awaitGreeted waits until no handshake is under way with a node that dialled us.
// Each of them has a deadline.
func (m *meetings) awaitGreeted(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.greeted[peer] > 0 {
		m.changed.Wait()
	}
}

// dialler is the door as Ergo has it for a dial to one node.
type dialler struct {
	*door
	node *Node
	peer string
}

// Start is called by Ergo for a connection that it has dialled. Where the other
// node's own dial goes on in its place, that is waited for: Ergo finds it, and
// drops this one. With TLS, Ergo keeps the plain connection, and ours is around it.
func (d dialler) Start(_ net.Addr, rw lib.NetReadWriter, _ bool, _ string) (ergonode.HandshakeDetails, error) {
	plain := rw.(net.Conn)
	if err := reserve.Check(plain); err != nil {
		return ergonode.HandshakeDetails{}, err
	}
	stop := d.node.closeOnStop(plain)
	defer stop()
	plain.SetDeadline(time.Now().Add(setupTime))
	m, end := d.node.meetings.begin(d.peer, plain)
	defer end()
	c, err := d.secure.dial(d.node.ctx, plain, d.peer)
	if err != nil {
		return ergonode.HandshakeDetails{}, fmt.Errorf("TLS: %w", err)
	}
	o := d.options
	o.Alive = d.alive
	peer, err := handshake.Start(c, d.peer, o)
	switch {
	case err == nil:
		plain.SetDeadline(time.Time{})
	case errors.Is(err, handshake.ErrSimultaneous), d.node.meetings.hasYielded(m):
		if !d.node.awaitUp(m.up, d.peer) {
			return ergonode.HandshakeDetails{}, err
		}
		peer.Name = d.peer
	default:
		return ergonode.HandshakeDetails{}, err
	}
	return details(dist.Session{Conn: c, Peer: peer}), nil
}

// alive answers a node that says that it is connected with us: so it is if it
// dialled us a moment ago, else it means a connection that has been lost here.
func (d dialler) alive() handshake.Status {
	d.node.meetings.awaitGreeted(d.peer)
	if d.node.connection(d.peer) != nil {
		return handshake.StatusFalse
	}
	return handshake.StatusTrue
}

// awaitUp waits until a node that dialled us is connected.
func (n *Node) awaitUp(up <-chan struct{}, peer string) bool {
	if n.connection(peer) != nil {
		return true
	}
	select {
	case <-up:
		return true
	case <-time.After(setupTime):
	case <-n.ctx.Done():
	}
	return false
}
