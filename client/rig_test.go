package client

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

const (
	name   = "n@127.0.0.1"
	cookie = "secret"

	// patience is the time after which a test fails if it is still waiting.
	patience = 5 * time.Minute
)

// echo replies with the request, but does not answer the atom silence.
type echo struct {
	genserver.Plain
	silences *atomic.Int32
}

func (e echo) HandleCall(c genserver.Call) {
	if r := etf.NewReader(c.Request); string(r.Atom()) == "silence" {
		e.silences.Add(1)
		return
	}
	c.Reply(append(c.Begin(), c.Request...))
}

// rig is a node with a server registered as echo.
type rig struct {
	*node.Node
	silences atomic.Int32 // number of calls that were not answered
}

func start(t *testing.T) *rig {
	t.Helper()
	r := new(rig)
	n, err := node.Start(t.Context(), node.Options{
		Name: name, Cookie: cookie, Keeper: &epmd.Keeper{Mode: epmd.Off}, Log: slog.New(slog.DiscardHandler),
		Supervisors: []node.Supervisor{{Name: "sup", Children: []node.Child{{Name: "echo",
			Handler: echo{silences: &r.silences}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Node = n
	t.Cleanup(n.Stop)
	return r
}

func (r *rig) dialer() Dialer { return Dialer{Cookie: cookie, Addr: r.Addr().String()} }

// dialAt dials a node without TLS; if addr is empty, it asks the EPMD of the node's host.
func dialAt(ctx context.Context, addr, node, cookie string) (*Conn, error) {
	return Dialer{Cookie: cookie, Addr: addr}.Dial(ctx, node)
}

func dialed(t *testing.T) (*rig, *Conn) {
	t.Helper()
	r := start(t)
	c, err := r.dialer().Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return r, c
}

// peer is a node that the test plays.
type peer struct {
	net.Listener
	t *testing.T
}

func startPeer(t *testing.T) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &peer{l, t}
}

func (p *peer) dialer() Dialer { return Dialer{Cookie: cookie, Addr: p.Addr().String()} }

// accept accepts the next caller and plays its node.
func (p *peer) accept(play func(net.Conn)) {
	p.t.Helper()
	played := make(chan struct{})
	p.t.Cleanup(func() { <-played })
	go func() {
		defer close(played)
		c, err := p.Accept()
		if err != nil {
			p.t.Error(err)
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		if _, err := handshake.Accept(c, handshake.Options{Node: name, Creation: 1, Cookie: cookie}); err != nil {
			p.t.Error(err)
			return
		}
		play(c)
	}()
}

// await polls until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen within %v", what, patience)
		}
	}
}

// noLeak fails a test that leaves goroutines running.
func noLeak(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		await(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before })
	})
}
