package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/wire"
)

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

// The connection sends ticks at any ticktime, and ends within a tick after that time of silence.
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
				frame, err := wire.Read(r, maxFrame)
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
				t.Errorf("a call of %q writes %v and %d bytes, want %v", name, ops, r.Buffered(), want)
			}
		}
		// goesOff reports the end of a monitor, and returns the names whose calls failed.
		goesOff := func(op wire.Op, ref etf.Ref) (ended []etf.Atom) {
			b, err := wire.Append(nil, caps, etf.Tuple{int64(op), etf.Atom(""), etf.Atom(""), ref, etf.Atom("killed")})
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
			t.Errorf("%d monitors of 3 names", len(c.watched))
		}
		if ended := goesOff(wire.OpExitTT, refs["x"]); ended != nil {
			t.Errorf("another signal ends %q", ended)
		}
		if ended := goesOff(wire.OpMonitorPExit, etf.NewRef("other", 1, 1)); ended != nil {
			t.Errorf("another's monitor ends %q", ended)
		}
		if ended := goesOff(wire.OpMonitorPExit, refs["x"]); !slices.Equal(ended, []etf.Atom{"x"}) ||
			len(c.watched) != 2 {
			t.Errorf("the end of x ends %q, and leaves %d monitors", ended, len(c.watched))
		}
		send("x", wire.OpMonitorP, wire.OpRegSend)
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
				t.Errorf("%d bytes are kept", kept)
			}
		}
		if cap(c.out) == 0 {
			t.Error("nothing is kept")
		}
	})
}

// slowToEnd is a connection whose reader returns late at the end.
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

// Answers of a generator.
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
