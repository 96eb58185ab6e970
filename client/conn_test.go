package client

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/node/wire"
)

func TestCall(t *testing.T) {
	noLeak(t)
	_, c := dialed(t)
	for _, want := range []etf.Term{
		etf.Atom("a"), int64(1), etf.String("text"), etf.Tuple{etf.List{int64(1000)}}, make([]byte, 1<<20),
	} {
		got, err := c.Call(t.Context(), "echo", want)
		if err != nil || string(etf.Format(nil, got)) != string(etf.Format(nil, want)) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	for range 2 {
		if _, err := c.Call(t.Context(), "nobody", etf.Atom("a")); !errors.Is(err, ErrNoProcess) ||
			!strings.HasPrefix(err.Error(), "call nobody: ") {
			t.Errorf("call of no name: %v", err)
		}
	}
	if _, err := c.Call(t.Context(), "echo", struct{}{}); err == nil {
		t.Error("a request that is not a term is sent")
	}
	if _, err := c.Call(t.Context(), etf.Atom(strings.Repeat("x", 256)), etf.Atom("a")); err == nil {
		t.Error("a name that is not an atom is called")
	}
	if _, err := c.Call(t.Context(), "echo", etf.Atom("still there")); err != nil {
		t.Error(err)
	}
}

func TestApply(t *testing.T) {
	_, c := dialed(t)
	got, err := c.Apply(t.Context(), "erlang", "node", nil)
	if err != nil || got != etf.Atom(name) {
		t.Errorf("%v, %v", got, err)
	}
	got, err = c.Apply(t.Context(), "os", "cmd", []etf.Term{etf.String("ls")})
	if want := `{badrpc,{'EXIT',{undef,[{os,cmd,["ls"],[]}]}}}`; err != nil || string(etf.Format(nil, got)) != want {
		t.Errorf("%v, %v", got, err)
	}
}

// Concurrent calls return their own answers.
func TestPipelined(t *testing.T) {
	noLeak(t)
	_, c := dialed(t)
	var callers sync.WaitGroup
	for i := range int64(1000) {
		callers.Go(func() {
			for j := range int64(10) {
				got, err := c.Call(t.Context(), "echo", etf.Tuple{i, j})
				if want := (etf.Tuple{i, j}); err != nil || !slices.Equal(got.(etf.Tuple), want) {
					t.Errorf("%v, %v, want %v", got, err, want)
				}
			}
		})
	}
	callers.Wait()
}

// A canceled call does not affect others.
func TestContext(t *testing.T) {
	r, c := dialed(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	given := make(chan error)
	go func() {
		_, err := c.Call(ctx, "echo", etf.Atom("silence"))
		given <- err
	}()
	await(t, "a call", func() bool { return r.silences.Load() == 1 })
	cancel(why)
	if err := <-given; !errors.Is(err, why) || errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if _, err := c.Call(ctx, "echo", etf.Atom("silence")); !errors.Is(err, why) {
		t.Errorf("after the end of the context: %v", err)
	}
	if _, err := c.Call(t.Context(), "echo", etf.Atom("a")); err != nil || r.silences.Load() != 1 {
		t.Errorf("%v, after %d calls", err, r.silences.Load())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) != 0 {
		t.Errorf("%d calls are left", len(c.calls))
	}
}

func TestLost(t *testing.T) {
	for _, tt := range []struct {
		what string
		end  func(*rig, *Conn)
		also error
	}{
		{"the node stops", func(r *rig, _ *Conn) { r.Stop() }, nil},
		{"we close", func(_ *rig, c *Conn) { c.Close() }, net.ErrClosed},
	} {
		r, c := dialed(t)
		lost := make(chan error)
		go func() {
			_, err := c.Call(t.Context(), "echo", etf.Atom("silence"))
			lost <- err
		}()
		await(t, "a call", func() bool { return r.silences.Load() == 1 })
		tt.end(r, c)
		if err := <-lost; !errors.Is(err, ErrLost) || tt.also != nil && !errors.Is(err, tt.also) {
			t.Errorf("%s: %v", tt.what, err)
		}
		<-c.ctx.Done()
		if _, err := c.Call(t.Context(), "echo", etf.Atom("a")); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("%s, another call: %v", tt.what, err)
		}
	}
}

func TestRefused(t *testing.T) {
	noLeak(t)
	addr := start(t).Addr().String()
	if _, err := DialAddr(t.Context(), addr, name, "wrong"); err == nil || !strings.Contains(err.Error(), "cookie") {
		t.Errorf("with a wrong cookie: %v", err)
	}
	if _, err := DialAddr(t.Context(), addr, "other@127.0.0.1", cookie); !errors.Is(err, handshake.ErrRefused) {
		t.Errorf("another node than the dialed one: %v", err)
	}
	if _, err := DialAddr(t.Context(), "127.0.0.1:1", name, cookie); err == nil {
		t.Error("connected without a node")
	}
	if _, err := Dial(t.Context(), "nohost", cookie); err == nil || !strings.Contains(err.Error(), "name@host") ||
		strings.Contains(err.Error(), "%!") {
		t.Errorf("a name without a host: %v", err)
	}
	p := startPeer(t)
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := DialAddr(late, p.Addr().String(), name, cookie); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	why := errors.New("enough")
	over, end := context.WithCancelCause(t.Context())
	end(why)
	if _, err := DialAddr(over, p.Addr().String(), name, cookie); !errors.Is(err, why) {
		t.Errorf("after the end of the context: %v", err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := DialAddr(ctx, p.Addr().String(), name, cookie)
		ended <- err
	}()
	gone, err := p.Accept() // earlier dials made no connection
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	stop(why) // possibly before the dialer has the connection
	if err := <-ended; !errors.Is(err, why) || strings.Count(err.Error(), why.Error()) != 1 {
		t.Errorf("a silent node: %v", err)
	}
	gone.SetDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, gone); err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// A call fails when its node sends no ticks.
func TestTicktime(t *testing.T) {
	noLeak(t)
	p := startPeer(t)
	p.accept(func(c net.Conn) { io.Copy(io.Discard, c) })
	d := p.dialer()
	d.Ticktime = 2 * time.Second
	c, err := d.Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), "echo", etf.Atom("a")); !errors.Is(err, ErrLost) ||
		!strings.Contains(err.Error(), "net_tick_timeout") {
		t.Error(err)
	}
}

// Frames that a node may send.
func TestFrames(t *testing.T) {
	const answers = "\x70\x83\x68\x03\x61\x02\x77\x00\x77\x00\x83" // {2,'',''} and the version byte of the message
	for _, tt := range []struct {
		what, frame string
		err         string // of the call; empty if it is answered
	}{
		{"a tick", "", ""},
		{"a message that is not an answer", answers + "\x77\x01a", ""},
		{"a message of three", answers + "\x68\x03\x61\x01\x77\x01a\x77\x01a", ""},
		{"an answer to another call", answers + "\x68\x02\x61\xFF\x77\x01a", ""},
		{"an answer with a reference",
			answers + "\x68\x02\x5A\x00\x01\x77\x01a\x00\x00\x00\x01\x00\x00\x00\x01\x77\x01a", ""},
		{"an operation of no interest", "\x70\x83\x68\x01\x61\x63", ""},
		{"one as long as a message", "\x70\x83\x68\x03\x61\x01\x77\x00\x77\x00", ""},
		{"a message as a later release may have it", "\x70\x83\x68\x02\x61\x02\x77\x00", ""},
		{"an end of a process likewise", "\x70\x83\x68\x02\x61\x15\x77\x00", ""},
		{"the end of a process that is not watched", "\x70\x83\x68\x05\x61\x15\x77\x00\x77\x00" +
			"\x5A\x00\x01\x77\x01a\x00\x00\x00\x01\x00\x00\x00\x01\x77\x01a", ""},
		{"a distribution header", "\x83\x44\x00", "distribution header"},
		{"no term", "\x70\x83\xFF", "etf"},
		{"nothing after the control message", "\x70\x83\x68\x03\x61\x02\x77\x00\x77\x00", "without a message"},
	} {
		p := startPeer(t)
		p.accept(func(c net.Conn) {
			c.Read(make([]byte, readBuffer)) // the call
			c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(tt.frame))), tt.frame...))
			c.Write([]byte("\x00\x00\x00\x11" + answers + "\x68\x02\x61\x01\x61\x05")) // the answer 5 to the first call
			io.Copy(io.Discard, c)
		})
		c, err := p.dialer().Dial(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Call(t.Context(), "echo", etf.Atom("a"))
		switch {
		case tt.err == "" && (err != nil || got != int64(5)):
			t.Errorf("%s: %v, %v", tt.what, got, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %v, %v, want %q", tt.what, got, err, tt.err)
		}
		c.Close()
	}
}

func TestLargeFrame(t *testing.T) {
	p := startPeer(t)
	p.accept(func(c net.Conn) {
		c.Write(binary.BigEndian.AppendUint32(nil, maxFrame+1))
		io.Copy(io.Discard, c)
	})
	c, err := p.dialer().Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-c.ctx.Done()
	if _, err := c.Call(t.Context(), "echo", etf.Atom("a")); err == nil ||
		!strings.Contains(err.Error(), "16777217 bytes") {
		t.Error(err)
	}
}

// A process that ends during a call.
func TestDown(t *testing.T) {
	p := startPeer(t)
	p.accept(func(c net.Conn) {
		monitor := make([]byte, readBuffer)
		n, _ := c.Read(monitor)
		r := etf.NewReader(monitor[wire.HeaderSize+1 : n])
		r.Version()
		r.Tuple()
		r.Int()
		r.Raw()
		r.Raw()
		ref := etf.Ref(r.Ref())
		down := etf.Tuple{int64(wire.OpMonitorPExit), etf.Atom(""), etf.Atom(""), ref, etf.Atom("killed")}
		b, err := wire.Append(nil, caps, down)
		if err != nil {
			t.Error(err)
		}
		c.Write(b)
		io.Copy(io.Discard, c)
	})
	c, err := p.dialer().Dial(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Call(t.Context(), "echo", etf.Atom("a"))
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
}

// The data that waits for a node that does not read is bounded.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := piped(t, 0)
		_, _, err := c.send("echo", etf.Atom("a"))
		synctest.Wait() // the first call is being written, and later ones wait
		for range 100 {
			if err != nil {
				break
			}
			_, _, err = c.send("echo", make([]byte, 1<<20))
		}
		if !errors.Is(err, errUnsent) {
			t.Error(err)
		}
		c.mu.Lock()
		c.out = c.out[:maxUnsent]
		c.mu.Unlock()
		if _, _, err := c.send("echo", etf.Atom("a")); err != nil {
			t.Errorf("the maximum of bytes: %v", err)
		}
		c.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.out != nil {
			t.Errorf("%d bytes wait after the end", len(c.out))
		}
	})
}
