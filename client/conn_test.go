package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
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
			t.Errorf("call to an unregistered name: %v", err)
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
			t.Errorf("%s: a later call: %v", tt.what, err)
		}
	}
}

func TestRefused(t *testing.T) {
	noLeak(t)
	addr := start(t).Addr().String()
	if _, err := dialAt(t.Context(), addr, name, "wrong"); err == nil || !strings.Contains(err.Error(), "cookie") {
		t.Errorf("with a wrong cookie: %v", err)
	}
	if _, err := dialAt(t.Context(), addr, "other@127.0.0.1", cookie); !errors.Is(err, handshake.ErrRefused) {
		t.Errorf("with another node's name: %v", err)
	}
	if _, err := dialAt(t.Context(), "127.0.0.1:1", name, cookie); err == nil {
		t.Error("connected without a node")
	}
	if _, err := dialAt(t.Context(), "", "nohost", cookie); err == nil || !strings.Contains(err.Error(), "name@host") ||
		strings.Contains(err.Error(), "%!") {
		t.Errorf("with a name without a host: %v", err)
	}
	p := startPeer(t)
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := dialAt(late, p.Addr().String(), name, cookie); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	why := errors.New("enough")
	over, end := context.WithCancelCause(t.Context())
	end(why)
	if _, err := dialAt(over, p.Addr().String(), name, cookie); !errors.Is(err, why) {
		t.Errorf("after the end of the context: %v", err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := dialAt(ctx, p.Addr().String(), name, cookie)
		ended <- err
	}()
	gone, err := p.Accept() // earlier dials made no connection
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	stop(why) // possibly before the dialer has the connection
	if err := <-ended; !errors.Is(err, why) || strings.Count(err.Error(), why.Error()) != 1 {
		t.Errorf("dialing a silent node: %v", err)
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

// Frames that a caller does not need are ignored. Frames that cannot be read end the
// connection.
func TestFrames(t *testing.T) {
	const answers = "\x70\x83\x68\x03\x61\x02\x77\x00\x77\x00\x83" // {2,'',''} and the version byte of the message
	for _, tt := range []struct {
		what, frame string
		err         string // of the call; empty if it is answered
	}{
		{"a tick", "", ""},
		{"a message that is not an answer", answers + "\x77\x01a", ""},
		{"a tuple of three", answers + "\x68\x03\x61\x01\x77\x01a\x77\x01a", ""},
		{"an answer to another call", answers + "\x68\x02\x61\xFF\x77\x01a", ""},
		{"an answer with a reference",
			answers + "\x68\x02\x5A\x00\x01\x77\x01a\x00\x00\x00\x01\x00\x00\x00\x01\x77\x01a", ""},
		{"an operation that callers ignore", "\x70\x83\x68\x01\x61\x63", ""},
		{"another operation with as many elements as a send", "\x70\x83\x68\x03\x61\x01\x77\x00\x77\x00", ""},
		{"a send as a later release may write it", "\x70\x83\x68\x02\x61\x02\x77\x00", ""},
		{"the end of a process as a later release may write it", "\x70\x83\x68\x02\x61\x15\x77\x00", ""},
		{"the end of a process that is not watched", "\x70\x83\x68\x05\x61\x15\x77\x00\x77\x00" +
			"\x5A\x00\x01\x77\x01a\x00\x00\x00\x01\x00\x00\x00\x01\x77\x01a", ""},
		{"a distribution header", "\x83\x44\x00", "distribution header"},
		{"not a term", "\x70\x83\xFF", "etf"},
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
		c.Write(binary.BigEndian.AppendUint32(nil, maxAnswer+1))
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

// The memory of a large frame is freed, even if only ticks follow.
func TestLargeFrameFreed(t *testing.T) {
	_, peer := piped(t, 0)
	go io.Copy(io.Discard, peer)
	const size = 8 << 20
	frame, err := wire.Append(nil, caps, etf.Tuple{int64(wire.OpSend), etf.Atom(""), etf.Atom("")}, make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap() // includes our copy of the frame
	peer.Write(frame)
	peer.Write(tick)
	await(t, "the frame freed", func() bool { return heap() < before+size/2 })
	runtime.KeepAlive(frame)
}

// A call fails if its process ends.
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

// If a node does not read, the bytes that wait for it are limited.
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
			t.Errorf("with the maximum number of bytes waiting: %v", err)
		}
		c.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.out != nil {
			t.Errorf("%d bytes are queued after the end of the connection", len(c.out))
		}
	})
}

// piped returns a connection in a bubble, and its other end.
func piped(t *testing.T, ticktime time.Duration) (c *Conn, peer net.Conn) {
	ours, peer := net.Pipe()
	c = newConn(ours, etf.NewPid("caller@host", 1, 0, 1), ticktime)
	t.Cleanup(func() {
		peer.Close()
		c.Close()
	})
	return c, peer
}

// The connection sends ticks, whatever the ticktime. If the peer is silent for the ticktime, the
// connection ends by the next tick.
func TestTick(t *testing.T) {
	for _, tt := range []struct{ ticktime, silent, every time.Duration }{
		{0, time.Minute, 15 * time.Second},
		{2 * time.Second, 2 * time.Second, time.Second / 2},
		{time.Hour, time.Hour, 15 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, peer := piped(t, tt.ticktime)
			for range 10 {
				begin, got := time.Now(), make([]byte, wire.HeaderSize)
				io.ReadFull(peer, got)
				if !bytes.Equal(got, tick) || time.Since(begin) != tt.every {
					t.Errorf("%x after %v, want a tick after %v", got, time.Since(begin), tt.every)
				}
				peer.Write(tick)
			}
			received := time.Now()
			go io.Copy(io.Discard, peer)
			<-c.ctx.Done()
			if silent := time.Since(received); silent < tt.silent || silent > tt.silent+tt.every {
				t.Errorf("ended after %v, want %v", silent, tt.silent)
			}
			if err := context.Cause(c.ctx); !strings.Contains(err.Error(), "net_tick_timeout") {
				t.Error(err)
			}
		})
	}
}

// A connection to a node that does not read is lost, even if the node sends ticks.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := piped(t, 0)
		var ticks sync.WaitGroup
		defer ticks.Wait()
		ticks.Go(func() {
			for range 10 {
				time.Sleep(maxTick)
				peer.Write(tick)
			}
			peer.Close()
		})
		if _, err := c.Call(t.Context(), "echo", etf.Atom("a")); !errors.Is(err, ErrLost) ||
			!errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}

// All calls to a name share one monitor until it reports the end of the process.
func TestMonitors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := piped(t, 0)
		r := bufio.NewReader(peer)
		const none = "" // an unknown reference
		calls := make(map[etf.Atom]*call)
		refs := make(map[etf.Atom]etf.Ref)
		send := func(name etf.Atom, want ...wire.Op) {
			t.Helper()
			_, waiting, err := c.send(name, etf.Atom("a"))
			if err != nil {
				t.Fatal(err)
			}
			calls[name] = waiting
			var ops []wire.Op
			for range want {
				frame, err := wire.Read(r, maxAnswer)
				if err != nil {
					t.Fatal(err)
				}
				f := etf.NewReader(frame[1:])
				f.Version()
				f.Tuple()
				op := wire.Op(f.Int())
				if ops = append(ops, op); op == wire.OpMonitorP {
					f.Raw()
					f.Raw()
					refs[name] = etf.Ref(f.Ref())
				}
			}
			synctest.Wait()
			if !slices.Equal(ops, want) || r.Buffered() > 0 {
				t.Errorf("a call to %q writes %v and %d bytes, want %v", name, ops, r.Buffered(), want)
			}
		}
		// goesOff sends a signal, such as the end of a monitor, and returns the names whose calls
		// failed.
		goesOff := func(op wire.Op, args ...etf.Term) (ended []etf.Atom) {
			b, err := wire.Append(nil, caps, append(etf.Tuple{int64(op), etf.Atom(""), etf.Atom("")}, args...))
			if err != nil {
				t.Fatal(err)
			}
			peer.Write(b)
			synctest.Wait()
			for name, waiting := range calls {
				if waiting.err != nil {
					ended = append(ended, name)
				}
			}
			return ended
		}

		send("x", wire.OpMonitorP, wire.OpRegSend)
		send("x", wire.OpRegSend)
		send("y", wire.OpMonitorP, wire.OpRegSend)
		send(none, wire.OpMonitorP, wire.OpRegSend)
		if len(c.watched) != 3 {
			t.Errorf("%d monitors for 3 names", len(c.watched))
		}
		if ended := goesOff(wire.OpExitTT, refs["x"], etf.Atom("killed")); ended != nil {
			t.Errorf("another signal fails the calls to %q", ended)
		}
		if ended := goesOff(wire.OpMonitorPExit); ended != nil {
			t.Errorf("the end of a monitor without a reference fails the calls to %q", ended)
		}
		if ended := goesOff(wire.OpMonitorPExit, etf.NewRef("other", 1, 1), etf.Atom("killed")); ended != nil {
			t.Errorf("the end of an unknown monitor fails the calls to %q", ended)
		}
		if ended := goesOff(wire.OpMonitorPExit, refs["x"], etf.Atom("killed")); !slices.Equal(ended, []etf.Atom{"x"}) ||
			len(c.watched) != 2 {
			t.Errorf("the end of x fails the calls to %q, and leaves %d monitors", ended, len(c.watched))
		}
		send("x", wire.OpMonitorP, wire.OpRegSend)
		if ended := goesOff(wire.OpMonitorPExit, refs["y"]); !slices.Equal(ended, []etf.Atom{"y"}) {
			t.Errorf("the end of y without a reason fails the calls to %q", ended)
		}
	})
}

// The buffer of calls is reused unless it is large.
func TestSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := piped(t, 0)
		go io.Copy(io.Discard, peer)
		for _, size := range []int{1 << 20, 1, 1} {
			if _, _, err := c.send("echo", make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if kept := cap(c.out); kept > readBuffer {
				t.Errorf("a buffer of %d bytes is kept", kept)
			}
		}
		if cap(c.out) == 0 {
			t.Error("no buffer is kept")
		}
	})
}

// slowToEnd is a connection whose reader returns late after Close.
type slowToEnd struct {
	net.Conn
	ended bool
}

func (c *slowToEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		time.Sleep(time.Second) // virtual time
		c.ended = true
	}
	return n, err
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, _ := net.Pipe()
		conn := &slowToEnd{Conn: ours}
		if newConn(conn, "", 0).Close(); !conn.ended {
			t.Error("the reader continues after Close")
		}
	})
}

// Answers of a generator are read, or become errors.
func TestReadAnswer(t *testing.T) {
	for _, tt := range []struct {
		answer etf.Term
		want   string // error text; empty if the answer is read
		is     error  // wrapped error, or nil
	}{
		{etf.Tuple{etf.Atom("ok"), int64(7)}, "", nil},
		{etf.Atom("ok"), "", ErrUnknown},
		{etf.Atom("error"), "answered error", nil},
		{etf.Tuple{etf.Atom("ok"), int64(7), int64(8)}, "answered {ok,7,8}", nil},
		{etf.Tuple{etf.Atom("ok"), etf.Atom("seven")}, "answered {ok,seven}", nil},
		{etf.Tuple{etf.Atom("error"), etf.Atom("badarg")}, "", ErrBadArgument},
		{etf.Tuple{etf.Atom("error"), etf.Atom("new")}, "answered {error, new}", nil},
		{etf.Tuple{etf.Atom("error"), etf.Tuple{int64(1)}}, "answered {error,{1}}", nil},
		{etf.Tuple{etf.Atom("badrpc"), etf.Atom("badarg")}, "answered {badrpc,badarg}", nil},
		{int64(7), "answered 7", nil},
	} {
		answer, err := etf.Append(nil, tt.answer, caps)
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		err = readAnswer(answer, func(r *etf.Reader) { got = r.Int() })
		switch {
		case tt.want == "" && tt.is == nil:
			if err != nil || got != 7 {
				t.Errorf("%v: %d, %v", tt.answer, got, err)
			}
		case err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && err != tt.is:
			t.Errorf("%v: %v, want %q, %v", tt.answer, err, tt.want, tt.is)
		}
	}
}
