package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// A node is found through its EPMD.
func TestDialEPMD(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := epmd.NewServer(slog.New(slog.DiscardHandler))
	server.Serve(l)
	defer server.Close()
	port := func(addr net.Addr) uint16 { return uint16(addr.(*net.TCPAddr).Port) }
	t.Setenv("ERL_EPMD_PORT", strconv.Itoa(int(port(l.Addr()))))
	r := start(t)
	registered, err := epmd.Register(t.Context(), l.Addr().String(), epmd.Node{Name: "n", Port: port(r.Addr())})
	if err != nil {
		t.Fatal(err)
	}
	defer registered.Close()
	c, err := dialAt(t.Context(), "", name, cookie)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), "echo", etf.Atom("a")); err != nil {
		t.Error(err)
	}
	if _, err := dialAt(t.Context(), "", "other@127.0.0.1", cookie); !errors.Is(err, epmd.ErrNotFound) {
		t.Errorf("dialing a name that is not registered: %v", err)
	}
	t.Setenv("ERL_EPMD_PORT", "none")
	if _, err := dialAt(t.Context(), "", name, cookie); err == nil || !strings.Contains(err.Error(), "ERL_EPMD_PORT") {
		t.Errorf("with an invalid ERL_EPMD_PORT: %v", err)
	}
	if c, err = (Dialer{Cookie: cookie, EPMD: l.Addr().String()}).Dial(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A node's certificate must name its host, or ServerName.
func TestDialTLS(t *testing.T) {
	web := httptest.NewUnstartedServer(nil) // for its certificate, which names 127.0.0.1 and example.com
	web.StartTLS()
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	for _, tt := range []struct {
		serverName string
		ok         bool
	}{
		{"", true},
		{"example.com", true},
		{"other.example", false},
	} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan error)
		go func() {
			c, err := l.Accept()
			if err == nil {
				c.SetDeadline(time.Now().Add(patience))
				_, err = handshake.Accept(c, handshake.Options{Node: name, Creation: 1, Cookie: cookie, LongLen: true})
				io.Copy(io.Discard, c)
				c.Close()
			}
			accepted <- err
		}()
		d := Dialer{Cookie: cookie, Addr: l.Addr().String(),
			TLS: &tls.Config{RootCAs: roots, ServerName: tt.serverName}}
		c, err := d.Dial(t.Context(), name)
		if (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.serverName, err)
		}
		if err == nil {
			c.Close()
		}
		if err := <-accepted; (err == nil) != tt.ok {
			t.Errorf("%q: the node's handshake: %v", tt.serverName, err)
		}
		l.Close()
	}
}

// Each connection has a different pid, with its own node name and creation.
func TestCallers(t *testing.T) {
	r := start(t)
	names, creations := make(map[etf.Atom]bool), make(map[uint32]bool)
	const dials = 8
	for range dials {
		c, err := r.dialer().Dial(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		names[c.self.Node()], creations[c.self.Creation()] = true, true
		c.Close()
	}
	if len(names) < dials || len(creations) < dials || creations[0] {
		t.Error(names, creations)
	}
}

// endsLate is a connection that cancels its dialer's context when the last message of the
// handshake has arrived.
type endsLate struct {
	net.Conn
	writes int
	end    func()
	ended  chan struct{}
}

func (c *endsLate) SetDeadline(time.Time) error { close(c.ended); return nil }

func (c *endsLate) Write(b []byte) (int, error) {
	c.writes++
	return c.Conn.Write(b)
}

func (c *endsLate) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.writes == 2 {
		c.end()
		<-c.ended
	}
	return n, err
}

// A dial fails if its context ends before the dial does, because the connection then has a deadline
// in the past.
func TestEndsLate(t *testing.T) {
	p := startPeer(t)
	p.accept(func(net.Conn) {})
	conn, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	late := &endsLate{Conn: conn, end: cancel, ended: make(chan struct{})}
	if _, err := p.dialer().shakeHands(ctx, late, name); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
