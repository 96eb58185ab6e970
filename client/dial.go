package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Dialer configures the connection to a node.
type Dialer struct {
	Cookie string

	// Addr is the node's address, host:port. If Addr is empty, Dial asks the EPMD at the address
	// in the field EPMD, also host:port. If both are empty, it asks the EPMD on the node's host,
	// on port ERL_EPMD_PORT or 4369.
	Addr, EPMD string

	// TLS is the configuration for a node that requires TLS, or nil. If its ServerName is
	// empty, the certificate must be valid for the host in the node's name.
	TLS *tls.Config

	// Ticktime is how long the node may be silent before the connection counts as lost. Like
	// net_ticktime in Erlang's kernel, it should be the same on both sides. 0 means 60 seconds.
	Ticktime time.Duration
}

// Dial connects to the node named name@host. ctx limits the dial, not the connection.
func (d Dialer) Dial(ctx context.Context, node string) (*Conn, error) {
	c, err := d.dial(ctx, node)
	if err != nil {
		if why := context.Cause(ctx); why != nil && !errors.Is(err, why) { // net does not return the cause
			err = fmt.Errorf("%w: %w", why, err)
		}
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	return c, nil
}

func (d Dialer) dial(ctx context.Context, node string) (*Conn, error) {
	addr := d.Addr
	if addr == "" {
		var err error
		if addr, err = d.lookup(ctx, node); err != nil {
			return nil, err
		}
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if errors.Is(err, os.ErrDeadlineExceeded) { // net may time out at ctx's deadline before ctx is done
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if err != nil {
		return nil, err
	}
	if d.TLS != nil {
		config := d.TLS.Clone()
		if config.ServerName == "" {
			_, config.ServerName, _ = strings.Cut(node, "@")
		}
		conn = tls.Client(conn, config) // the first write performs the TLS handshake
	}
	self, err := d.shakeHands(ctx, conn, node)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return newConn(conn, self, d.Ticktime), nil
}

// lookup asks EPMD for a node's address.
func (d Dialer) lookup(ctx context.Context, node string) (addr string, err error) {
	name, host, ok := strings.Cut(node, "@")
	if !ok {
		return "", fmt.Errorf("name must be name@host")
	}
	at := d.EPMD
	if at == "" {
		port, err := epmd.DefaultPort()
		if err != nil {
			return "", err
		}
		at = epmd.JoinPort(host, port)
	}
	found, err := epmd.Lookup(ctx, at, name)
	return epmd.JoinPort(host, found.Port), err
}

// shakeHands performs the handshake and returns the caller's pid.
func (d Dialer) shakeHands(ctx context.Context, conn net.Conn, node string) (etf.Pid, error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	name, creation := handshake.NewName(host) // random, so that copies of a virtual machine differ
	name = "caller-" + name
	_, err := handshake.Start(conn, node, handshake.Options{
		Node: name, Creation: creation, Cookie: d.Cookie, LongLen: d.TLS != nil, Challenges: &challenges,
	})
	if !stop() {
		err = context.Cause(ctx)
	}
	return etf.NewPid(etf.Atom(name), 1, 0, creation), err
}

// challenges holds the open challenges of all connections, so that no node can trick us into
// answering our own.
var challenges handshake.Challenges
