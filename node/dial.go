package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/reserve"
)

// connectTime bounds the time to connect to another node, before the handshake.
const connectTime = 3 * time.Second

// keeper returns what keeps the port of l registered with EPMD.
func keeper(o Options, l net.Listener) *epmd.Keeper {
	k := o.Keeper
	if k == nil {
		k = &epmd.Keeper{Mode: o.EPMD, Log: o.Log}
	}
	addr := l.Addr().(*net.TCPAddr)
	k.Node = epmd.Node{Port: uint16(addr.Port), Type: epmd.Hidden}
	_, port, err := net.SplitHostPort(o.Listen)
	k.Fixed = err == nil && port != "0"
	if addr.IP.To4() == nil && !addr.IP.IsUnspecified() {
		k.Node.Protocol = epmd.TCPv6
	}
	return k
}

// Connect connects to another node, unless it is already connected. EPMD of its host
// must know it; without EPMD, it must listen at the port that this node was told to.
func (n *Node) Connect(peer string) error {
	if n.connection(peer) != nil {
		return nil
	}
	s, err := n.reach(peer)
	if err == nil && s.Conn != nil {
		err = n.serve(s)
	}
	if n.connection(peer) != nil { // that one or another, if it has dialed us meanwhile
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
	c, err := d.DialContext(n.ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(found.Port))))
	if err != nil {
		return nil, err
	}
	if err := reserve.Check(c); err != nil {
		c.Close()
		return nil, err
	}
	reserve.Bound(c)
	return c, nil
}

// introduce shakes hands with a node that we dialed. If that node's own dial
// replaces ours, introduce waits for it and returns no session.
func (n *Node) introduce(plain net.Conn, peer, cookie string) (s dist.Session, err error) {
	stop := n.closeOnStop(plain)
	defer stop()
	plain.SetDeadline(time.Now().Add(n.options.setup))
	m, end := n.meetings.begin(peer, plain)
	defer end()
	c, err := n.security.dial(n.ctx, plain, peer)
	if err != nil {
		return s, fmt.Errorf("TLS: %w", err)
	}
	o := n.handshake
	o.Cookie = cookie
	o.Alive = func() handshake.Status { return n.alive(peer) }
	p, err := handshake.Start(c, peer, o)
	if err == nil {
		plain.SetDeadline(time.Time{})
		return dist.Session{Conn: c, Peer: p}, nil
	}
	if errors.Is(err, handshake.ErrSimultaneous) || n.meetings.hasYielded(m) {
		ctx, cancel := context.WithTimeout(n.ctx, n.options.setup)
		defer cancel()
		select {
		case <-m.up:
			err = nil
		case <-ctx.Done():
		}
	}
	return s, err
}

// alive answers a node that believes it is connected to us: right if it dialed us a
// moment ago, else the connection has been lost here.
func (n *Node) alive(peer string) handshake.Status {
	n.meetings.awaitGreeted(peer)
	if n.connection(peer) != nil {
		return handshake.StatusFalse
	}
	return handshake.StatusTrue
}
