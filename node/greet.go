package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/handshake"
)

// setupTime bounds a whole handshake; it is OTP's setup time.
const setupTime = 7 * time.Second

// accept greets every caller on a goroutine of its own.
func (n *Node) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return // closed, by Stop
		}
		v, out := n.gate.arrive(c)
		if out != nil {
			n.breakOff(out, failedMany)
		}
		n.proto.Go(func() {
			n.greet(v)
			n.gate.leave(v)
		})
	}
}

// greeting is the handshake with a node that dialed us.
type greeting struct {
	node  *Node
	visit *visit
	peer  string // its name, once it may go on
	given string // the name we gave it, taken back unless it is connected
}

// greet shakes hands with a peer and has it served.
func (n *Node) greet(v *visit) {
	c := v.conn
	stop := n.closeOnStop(c)
	defer stop()
	g := &greeting{node: n, visit: v}
	defer g.done()
	c.SetDeadline(time.Now().Add(n.options.setup))
	s, err := g.shakeHands(c)
	if errors.Is(err, handshake.ErrCookie) {
		n.gate.offended(v.host)
	}
	if err == nil {
		c.SetDeadline(time.Time{})
		err = n.enter(s, v)
	}
	if err != nil {
		n.refused(v, s.Peer.Name, err)
		c.Close()
		return
	}
	if s.Peer.PreviousCookie {
		n.log.Info("a node has come with the previous cookie", "peer", s.Peer.Name, "address", c.RemoteAddr())
	}
	g.given = ""
}

// heard is called when the caller has sent its name.
func (g *greeting) heard() error {
	if !g.node.hold(g.visit) {
		return errBrokenOff
	}
	return nil
}

// hold delays a host that had a wrong cookie, and reports whether it may then go on.
func (n *Node) hold(v *visit) bool {
	delay := n.gate.spoke(v)
	if delay == 0 {
		return true
	}
	select {
	case <-n.ctx.Done():
		return false
	case <-v.broken:
		return false
	case <-v.hurried:
	case <-time.After(delay):
	}
	n.gate.goesOn(v)
	return true
}

// shakeHands turns a fault of ours into a failed handshake, so that no peer can stop
// the node with it.
func (g *greeting) shakeHands(c net.Conn) (s dist.Session, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %v\n%s", errFault, fault, debug.Stack())
		}
	}()
	if s.Conn, err = g.node.security.accept(g.node.ctx, c); err != nil {
		return s, fmt.Errorf("%w: %w", errTLS, err)
	}
	o := g.node.shaking()
	o.NameReceived, o.Admit, o.AssignName = g.heard, g.admit, g.assign
	s.Peer, err = handshake.Accept(s.Conn, o)
	return s, err
}

func (g *greeting) assign(host string) (node string, creation uint32) {
	node, creation = g.node.names.assign(host, func(node string) bool { return g.node.connection(node) != nil })
	g.given = node
	return node, creation
}

func (g *greeting) done() {
	g.node.names.takeBack(g.given)
	if g.peer != "" {
		g.node.meetings.done(g.peer)
	}
}

var (
	errFault = errors.New("fault in the node, please report it")
	errTLS   = errors.New("TLS")

	errBrokenOff = errors.New("broken off")
)

// breakOff hangs up on a caller that the gate no longer counts.
func (n *Node) breakOff(v *visit, why string) {
	n.log.Warn("handshake broken off", "why", why, "address", v.conn.RemoteAddr())
	n.past.failed(why)
	v.breakOff()
}

func (n *Node) refused(v *visit, peer string, err error) {
	if n.gate.counted(v) { // else it has been broken off
		n.past.failed(failureOf(err))
	}
	addr := v.conn.RemoteAddr()
	switch {
	case peer == "" && errors.Is(err, io.EOF), n.ctx.Err() != nil:
		// somebody checking whether the port is open, or our own end
		n.log.Debug("connection without a handshake", "address", addr, "err", err)
	default:
		n.log.Warn("connection refused", "peer", peer, "address", addr, "err", err)
	}
}

// admit decides whether a name may go on with the handshake. A connected name may
// try again: only the cookie shows whether it is the same node come back. A BEAM,
// recognised by its distribution headers, is told that the name is connected. Others
// give up at any status but ok (Scalang, ei, JInterface).
func (g *greeting) admit(peer handshake.Name) handshake.Status {
	n := g.node
	if peer.Node == n.name {
		return handshake.StatusNotAllowed
	}
	status := n.meetings.greet(n.name, peer.Node)
	if status != handshake.StatusNOK {
		g.peer = peer.Node
	}
	if status == handshake.StatusOK && peer.Flags.Has(handshake.DistHdrAtomCache) && n.connection(peer.Node) != nil {
		return handshake.StatusAlive
	}
	return status
}
