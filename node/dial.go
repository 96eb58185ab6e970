package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
	"github.com/flake-go/flake/node/socket"
)

// connectTime bounds the time to connect to another node, before the handshake.
const connectTime = 3 * time.Second

// keeper returns the EPMD keeper that registers the port of l.
func keeper(o Options, l net.Listener) *epmd.Keeper {
	k := cmp.Or(o.Keeper, &epmd.Keeper{Log: o.Log})
	addr := l.Addr().(*net.TCPAddr)
	k.Node = epmd.Node{Port: uint16(addr.Port), Type: epmd.Hidden}
	_, port, err := net.SplitHostPort(o.Listen)
	k.Fixed = err == nil && port != "0"
	if addr.IP.To4() == nil && !addr.IP.IsUnspecified() {
		k.Node.Protocol = epmd.TCPv6
	}
	return k
}

// Connect connects to another node unless it is already connected. The node must be
// registered with the EPMD of its host or, without EPMD, listen on the port in
// Options.Listen.
func (n *Node) Connect(peer string) error {
	if n.connection(peer) != nil {
		return nil
	}
	o := n.handshake.Load()
	err := n.reach(peer, o.Cookie)
	wrong := errors.Is(err, handshake.ErrCookie) && !errors.Is(err, os.ErrDeadlineExceeded)
	if wrong && o.PreviousCookie != "" {
		err = n.reach(peer, o.PreviousCookie)
	}
	if n.connection(peer) != nil { // over this connection, or one that the peer dialed at the same time
		return nil
	}
	return err
}

func (n *Node) dial(peer string) (net.Conn, error) {
	if err := reserve.Left(); err != nil {
		return nil, err
	}
	found, host, err := n.epmd.Find(n.ctx, peer)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: connectTime}
	c, err := d.DialContext(n.ctx, "tcp", epmd.JoinPort(host, found.Port))
	if err != nil {
		return nil, err
	}
	return c, socket.Admit(c)
}

// introduce performs the handshake with a node that we dialed.
func (n *Node) introduce(plain net.Conn, peer, cookie string) (c net.Conn, p handshake.Peer, err error) {
	plain.SetDeadline(time.Now().Add(n.options.setup))
	c, err = n.secure(plain, peer)
	if err != nil {
		return c, p, fmt.Errorf("TLS: %w", err)
	}
	o := *n.handshake.Load()
	o.Cookie = cookie
	o.Alive = func() handshake.Status { // called if the node reports that we are already connected
		n.meetings.awaitGreeted(peer)
		if n.connection(peer) != nil {
			return handshake.StatusFalse // it has just dialed us
		}
		return handshake.StatusTrue // the connection has been lost
	}
	p, err = handshake.Start(c, peer, o)
	plain.SetDeadline(time.Time{})
	return c, p, err
}

// SetCookies replaces the cookies for later handshakes. It does not close connections. previous is empty
// unless a fleet is changing its cookie.
func (n *Node) SetCookies(current, previous string) {
	o := *n.handshake.Load()
	o.Cookie, o.PreviousCookie = current, previous
	n.handshake.Store(&o)
}

// reach dials a node, performs the handshake with a cookie and serves the connection. If the
// node's own dial replaces ours, reach waits until the node has connected.
func (n *Node) reach(peer, cookie string) error {
	plain, err := n.dial(peer)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(n.ctx, func() { plain.Close() })
	defer stop()
	m, end := n.meetings.begin(peer, plain)
	defer end()
	c, p, err := n.introduce(plain, peer, cookie)
	if err == nil {
		return n.serve(c, p)
	}
	plain.Close()
	if !errors.Is(err, handshake.ErrSimultaneous) && !m.yielded.Load() {
		return err
	}
	select {
	case <-m.up:
		return nil
	case <-n.ctx.Done():
	case <-time.After(n.options.setup):
	}
	return err
}

// listen listens for other nodes: on Options.Listen if set, otherwise on loopback if the node's
// host is loopback, otherwise on all addresses. It does not look up the address of the host,
// because the result may be a virtual address that another machine has, or loopback, as in
// Debian's /etc/hosts.
func listen(ctx context.Context, o Options) (net.Listener, error) {
	addr := o.Listen
	if addr == "" {
		_, name, _ := strings.Cut(o.Name, "@")
		if !host.IsLoopback(name) {
			name = ""
		}
		addr = net.JoinHostPort(name, "0")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, Network(addr), addr)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	return socket.Listener(l, o.Log), nil
}

// Network returns the network for listening on addr, a host:port: tcp4 if the host is an IPv4
// address, otherwise tcp. For tcp and 0.0.0.0, package net would listen on IPv6 too.
func Network(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}
