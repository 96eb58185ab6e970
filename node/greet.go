package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/host"
)

// setupTime bounds a whole handshake; it is OTP's setup time.
const setupTime = 7 * time.Second

// accept greets each applicant on a new goroutine.
func (n *Node) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return // closed by Stop
		}
		v, out := n.gate.arrive(c)
		if out != nil {
			n.breakOff(out, failedMany)
		}
		n.proto.Go(func() { n.greet(v) })
		// Go runs a new goroutine before waiting ones. Without this call, the long TLS handshakes
		// of many simultaneous applicants would delay the connected peers.
		runtime.Gosched()
	}
}

// greet performs the handshake with a peer and serves the connection.
func (n *Node) greet(v *applicant) {
	c := v.conn
	stop := context.AfterFunc(n.ctx, func() { c.Close() })
	defer stop()
	defer n.gate.leave(v)
	defer func() {
		if v.admitted != "" {
			n.meetings.done(v.admitted)
		}
	}()
	c.SetDeadline(time.Now().Add(n.options.setup))
	stream, peer, err := n.shakeHands(v)
	if errors.Is(err, handshake.ErrCookie) {
		n.gate.offended(v.host)
	}
	if err == nil {
		c.SetDeadline(time.Time{})
		err = n.enter(v, stream, peer)
	}
	if err != nil {
		n.names.takeBack(peer)
		n.refused(v, peer.Name, err)
		c.Close()
		return
	}
	if peer.PreviousCookie {
		n.options.Log.Info("a node connected with the previous cookie", "peer", peer.Name, "address", c.RemoteAddr())
	}
}

// delay is called when an applicant has sent its name. It waits if the applicant's host has sent
// wrong cookies, and fails if the handshake must not continue.
func (n *Node) delay(v *applicant) error {
	delay := n.gate.nameReceived(v)
	if delay == 0 {
		return nil
	}
	select {
	case <-n.ctx.Done():
		return errBrokenOff
	case <-v.broken:
		return errBrokenOff
	case <-v.released:
	case <-time.After(delay):
	}
	n.gate.delayOver(v)
	return nil
}

// shakeHands performs the handshake. A panic becomes an error, so that no peer can stop
// the node.
func (n *Node) shakeHands(v *applicant) (stream net.Conn, peer handshake.Peer, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %v\n%s", errFault, fault, debug.Stack())
		}
	}()
	if stream, err = n.secure(v.conn, ""); err != nil {
		return stream, peer, fmt.Errorf("%w: %w", errTLS, err)
	}
	o := *n.handshake.Load()
	o.NameReceived = func() error { return n.delay(v) }
	o.Admit = func(peer handshake.Name) handshake.Status { return n.admit(v, peer) }
	o.AssignName = func(host string) (node string, creation uint32) {
		return n.names.assign(host, func(node string) bool { return n.connection(node) != nil })
	}
	peer, err = handshake.Accept(stream, o)
	return stream, peer, err
}

var (
	errFault = errors.New("fault in the node; please report it")
	errTLS   = errors.New("TLS")

	errBrokenOff = errors.New("broken off")
)

// breakOff closes the connection of an applicant that the gate no longer counts.
func (n *Node) breakOff(v *applicant, why string) {
	n.options.Log.Warn("handshake broken off", "why", why, "address", v.conn.RemoteAddr())
	n.history.failed(why)
	close(v.broken)
	v.conn.Close()
}

func (n *Node) refused(v *applicant, peer string, err error) {
	if n.gate.counted(v) { // otherwise breakOff has counted the failure
		n.history.failed(failureOf(err))
	}
	addr := v.conn.RemoteAddr()
	if peer == "" && errors.Is(err, io.EOF) || n.ctx.Err() != nil {
		// The applicant only checked whether the port is open, or the node is stopping.
		n.options.Log.Debug("connection without a handshake", "address", addr, "err", err)
		return
	}
	n.options.Log.Warn("connection refused", "peer", peer, "address", addr, "err", err)
}

// admit returns the status for a name. An applicant whose name is already connected may continue,
// because only the cookie shows whether it is the same node. A BEAM, recognized by the flag for
// distribution headers, is told that its name is connected. Other implementations (Scalang, ei,
// JInterface) are not, because they fail on any status but ok.
func (n *Node) admit(v *applicant, peer handshake.Name) handshake.Status {
	if peer.Node == n.options.Name {
		return handshake.StatusNotAllowed
	}
	status := n.meetings.greet(n.options.Name, peer.Node)
	if status != handshake.StatusNOK {
		v.admitted = peer.Node
	}
	if status == handshake.StatusOK && peer.Flags.Has(handshake.DistHdrAtomCache) && n.connection(peer.Node) != nil {
		return handshake.StatusAlive
	}
	return status
}

// idleTime is how long a peer must be idle before its connection may be closed to make room
// for another. An Erlang node reconnects automatically when it makes a call.
const idleTime = time.Minute

// enter closes the connection that a peer replaces, if any, and then serves the peer. Other
// applicants do not wait while that connection ends.
func (n *Node) enter(v *applicant, stream net.Conn, peer handshake.Peer) error {
	before, err := n.gate.proved(v, peer.Name)
	if err != nil {
		return err
	}
	if before != nil {
		n.breakOff(before, failedAgain)
	}
	tooLate := time.After(n.options.setup)
	for {
		old, err := n.serveOrReplace(v, stream, peer)
		if old == nil {
			return err
		}
		if at, by := hostPart(old.Addr()), hostPart(v.conn.RemoteAddr()); old.Peer().Name == peer.Name &&
			n.gate.replaced(peer.Name, at, by) {
			n.options.Log.Warn("two nodes with the same name replace each other's connections: give each its own name",
				"peer", peer.Name, "address", at, "other", by)
		}
		old.Close()
		select {
		case <-old.Done():
		case <-v.broken:
		case <-tooLate:
			return fmt.Errorf("the previous connection to %s has not ended: %w",
				old.Peer().Name, os.ErrDeadlineExceeded)
		}
	}
}

// hostPart returns an address without its port.
func hostPart(a net.Addr) string {
	address, _, _ := net.SplitHostPort(a.String())
	return address
}

// serveOrReplace serves a peer, or returns the connection that must end first.
func (n *Node) serveOrReplace(v *applicant, stream net.Conn, peer handshake.Peer) (old *distribution.Conn, err error) {
	n.entering.Lock()
	defer n.entering.Unlock()
	if !n.gate.counted(v) { // the connection to replace may be that of a later applicant under this name
		return nil, errBrokenOff
	}
	if old, err = n.connToReplace(peer.Name, v); old == nil && err == nil {
		n.gate.leave(v) // so that no later applicant under this name breaks it off
		err = n.serve(stream, peer)
	}
	return old, err
}

// connToReplace returns the connection that must end before an applicant can be served, if any: the
// one with the applicant's name or, if a limit on connections is reached, the one that has been idle
// longest.
func (n *Node) connToReplace(name string, v *applicant) (old *distribution.Conn, err error) {
	if old = n.connection(name); old != nil {
		return old, nil
	}
	if err = n.gate.full(v.host); err == nil {
		return nil, nil
	}
	now := n.gate.now()
	if now.Before(n.nextIdle) { // avoids searching all connections
		return nil, err
	}
	idle := now.Add(-idleTime)
	longest, since := now, idle
	for _, c := range n.connections() {
		asked := c.Asked()
		if asked.Before(longest) {
			longest = asked
		}
		mayGo := c.Context().Err() == nil && (err == errFull || host.Of(c.Addr()) == v.host)
		if mayGo && asked.Before(since) {
			old, since = c, asked
		}
	}
	n.nextIdle = longest.Add(idleTime)
	if old == nil {
		return nil, err
	}
	n.options.Log.Warn("idle connection closed to make room for another peer", "peer", old.Peer().Name, "by", name)
	return old, nil
}
