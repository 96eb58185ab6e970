package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

func TestReconnect(t *testing.T) {
	noLeak(t)
	r := start(t)
	n := NewNode(name, r.dialer())
	defer n.Close()
	for life := range 3 {
		if life > 0 {
			r = start(t)
			n.dialer = r.dialer() // the old port may be in use by another process
		}
		var conns [2]*Conn
		for i := range conns {
			if got, err := n.Call(t.Context(), "echo", etf.Atom("a")); err != nil || got != etf.Atom("a") {
				t.Errorf("life %d: %v, %v", life, got, err)
			}
			conns[i] = n.latest.conn
		}
		if conns[0] != conns[1] {
			t.Errorf("life %d: calls used two connections", life)
		}
		lost := make(chan error)
		go func() {
			_, err := n.Call(t.Context(), "echo", etf.Atom("silence"))
			lost <- err
		}()
		await(t, "a call", func() bool { return r.silences.Load() == 1 })
		r.Stop()
		if err := <-lost; !errors.Is(err, ErrLost) || !strings.HasPrefix(err.Error(), "node "+name) {
			t.Errorf("life %d: %v", life, err)
		}
		<-n.latest.conn.ctx.Done()
		for range 2 {
			if _, err := n.Call(t.Context(), "echo", etf.Atom("a")); err == nil || errors.Is(err, ErrLost) {
				t.Errorf("with no node: %v", err)
			}
		}
		if n.pause != 2*minPause {
			t.Errorf("the pause is %v after two attempts", n.pause)
		}
	}
}

// The pause between attempts is at most maxPause.
func TestPause(t *testing.T) {
	n := NewNode(name, Dialer{Cookie: cookie, Addr: "127.0.0.1:1"})
	defer n.Close()
	n.pause = maxPause // and the last attempt was long ago
	if _, err := n.Call(t.Context(), "echo", etf.Atom("a")); err == nil || n.pause != maxPause {
		t.Errorf("%v, with a pause of %v", err, n.pause)
	}
}

// Concurrent callers share one connection.
func TestOneConnection(t *testing.T) {
	noLeak(t)
	n := NewNode(name, start(t).dialer())
	defer n.Close()
	var callers sync.WaitGroup
	conns := make(chan *Conn, 100)
	for range cap(conns) {
		callers.Go(func() {
			c, err := n.connected(t.Context())
			if err != nil {
				t.Error(err)
			}
			conns <- c
		})
	}
	callers.Wait()
	close(conns)
	first := <-conns
	for c := range conns {
		if c != first {
			t.Fatal("callers got two connections")
		}
	}
	if n.Close(); first.ctx.Err() == nil {
		t.Error("the connection outlives the node")
	}
}

func TestClosedNode(t *testing.T) {
	noLeak(t)
	silent := startPeer(t) // does not answer handshakes
	n := NewNode(name, silent.dialer())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	call := func(ctx context.Context) {
		_, err := n.Call(ctx, "echo", etf.Atom("a"))
		ended <- err
	}
	go call(ctx)
	if _, err := silent.Accept(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go call(t.Context())
	n.Close()
	select {
	case <-n.latest.done:
	default:
		t.Error("an attempt continues after Close, and may connect")
	}
	if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the attempt under way: %v", err)
	}
	if _, err := n.Call(t.Context(), "echo", etf.Atom("a")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	n.Close()
}

// The error of a call that was canceled before it began names the process, if there is a
// connection.
func TestCanceledBefore(t *testing.T) {
	n := NewNode(name, start(t).dialer())
	defer n.Close()
	if _, err := n.Call(t.Context(), "echo", etf.Atom("a")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := n.Call(ctx, "echo", etf.Atom("a")); !errors.Is(err, context.Canceled) ||
			err.Error() != "node "+name+": call echo: context canceled" {
			t.Fatal(err)
		}
	}
}

// atSend is a context that calls a function when a call is about to be sent.
type atSend struct {
	context.Context
	do func()
}

func (c atSend) Err() error {
	c.do()
	return c.Context.Err()
}

// A call whose connection has just ended is sent on the next one.
func TestEndedMeanwhile(t *testing.T) {
	n := NewNode(name, start(t).dialer())
	defer n.Close()
	var first *Conn
	ctx := atSend{t.Context(), func() {
		if first == nil {
			first = n.latest.conn
			first.Close()
		}
	}}
	if got, err := n.Call(ctx, "echo", etf.Atom("a")); err != nil || got != etf.Atom("a") || n.latest.conn == first {
		t.Errorf("%v, %v", got, err)
	}
}
