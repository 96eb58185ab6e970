// Package client calls gen_servers and functions of an Erlang node from a Go
// program that is no node itself.
//
// Start at [Dial].
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// Conn is a connection to a node. One goroutine uses it at a time.
type Conn struct {
	conn   net.Conn
	stream *dist.Stream
	self   etf.Pid
	name   etf.Atom
	refs   atomic.Uint32
}

// Dialer says how to connect.
type Dialer struct {
	Cookie string
	// TLS, unless nil, is for a node that speaks TLS. Without a ServerName that of
	// its certificate must be the node's host.
	TLS *tls.Config
}

// Dial connects to the node named name@host, whose EPMD it asks where that is.
func Dial(ctx context.Context, node, cookie string) (*Conn, error) {
	return Dialer{Cookie: cookie}.Dial(ctx, node)
}

// DialAddr connects to the node at an address, without EPMD.
func DialAddr(ctx context.Context, addr, node, cookie string) (*Conn, error) {
	return Dialer{Cookie: cookie}.DialAddr(ctx, addr, node)
}

// Dial connects to the node named name@host, which it finds by way of the EPMD
// of that host, at port ERL_EPMD_PORT or 4369.
func (d Dialer) Dial(ctx context.Context, node string) (*Conn, error) {
	short, host, _ := strings.Cut(node, "@")
	port, err := epmd.DefaultPort()
	if err != nil {
		return nil, err
	}
	found, err := epmd.Lookup(ctx, net.JoinHostPort(host, strconv.Itoa(int(port))), short)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	return d.DialAddr(ctx, net.JoinHostPort(host, strconv.Itoa(int(found.Port))), node)
}

// DialAddr connects to the node at an address, without EPMD.
func (d Dialer) DialAddr(ctx context.Context, addr, node string) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	if d.TLS != nil {
		conn = d.secure(conn, node)
	}
	c := &Conn{conn: conn, name: callerName(conn)}
	creation := random() | 1
	err = c.within(ctx, func() error {
		peer, err := handshake.Start(conn, node, handshake.Options{
			Node: string(c.name), Creation: creation, Cookie: d.Cookie, LongLen: d.TLS != nil,
		})
		c.stream = dist.NewStream(conn, peer)
		return err
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	c.self = etf.NewPid(c.name, 1, 0, creation)
	return c, nil
}

// secure puts TLS around a connection, whose handshake is part of the first write.
func (d Dialer) secure(c net.Conn, node string) net.Conn {
	config := d.TLS.Clone()
	if config.ServerName == "" {
		_, config.ServerName, _ = strings.Cut(node, "@")
	}
	return tls.Client(c, config)
}

// callerName is a node name that no other caller has.
func callerName(conn net.Conn) etf.Atom {
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	return etf.Atom(fmt.Sprintf("caller-%08x@%s", random(), host))
}

func random() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint32(b[:])
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// ErrNoProcess is returned for a name that the node has not registered.
var ErrNoProcess = errors.New("noproc: no process is registered by that name")

// Call is gen_server:call({Name, Node}, Request). The end of ctx ends the
// connection.
func (c *Conn) Call(ctx context.Context, name etf.Atom, request etf.Term) (reply etf.Term, err error) {
	ref := etf.NewRef(c.name, 1, c.refs.Add(1), 0, 0)
	err = c.within(ctx, func() error {
		if err := c.stream.Monitor(c.self, name, ref); err != nil {
			return err
		}
		from := etf.Tuple{c.self, ref}
		if err := c.stream.RegSend(c.self, name, etf.Tuple{etf.Atom("$gen_call"), from, request}); err != nil {
			return err
		}
		if reply, err = c.await(ref); err != nil {
			return err
		}
		return c.stream.Demonitor(c.self, name, ref)
	})
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	return reply, nil
}

// await waits for {Ref, Reply}, or the end of who should answer.
func (c *Conn) await(ref etf.Ref) (etf.Term, error) {
	for {
		s, err := c.stream.Receive()
		switch {
		case err != nil:
			return nil, err
		case s.Down && s.Ref == ref && s.Reason == etf.Atom("noproc"):
			return nil, ErrNoProcess
		case s.Down && s.Ref == ref:
			return nil, fmt.Errorf("the process ended: %s", etf.Format(nil, s.Reason))
		}
		if t, ok := s.Message.(etf.Tuple); ok && len(t) == 2 && t[0] == ref {
			return t[1], nil
		}
	}
}

// Apply calls a function of the node, as rpc:call does. An exception there comes
// back as {badrpc, Reason}.
func (c *Conn) Apply(ctx context.Context, module, function etf.Atom, args []etf.Term) (etf.Term, error) {
	return c.Call(ctx, "rex", etf.Tuple{etf.Atom("call"), module, function, etf.List(args), etf.Atom("user")})
}

// within does what reads and writes the connection, until the end of ctx.
func (c *Conn) within(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := do()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
