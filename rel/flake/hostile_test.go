package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/handshake"
)

// An Erlang node is served whatever other peers do at the same time.
func TestHostile(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	var silent []net.Conn
	for range 200 {
		silent = append(silent, dial(t, n.addr))
	}
	checks := []string{"ping", "terms", "concurrent", "pipelined", "monitors", "get"}
	caller := spawnErl(t, n.port, nil, checks...)

	random := rand.New(rand.NewPCG(1, 2))
	noise := func(size int) []byte {
		b := make([]byte, random.IntN(size))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	name := handshake.Name{Version: 6, Flags: handshake.Offered, Creation: 1, Node: "half@127.0.0.1"}.Append([]byte{0, 0})
	binary.BigEndian.PutUint16(name, uint16(len(name)-2))
	for range 100 {
		c := dial(t, n.addr)
		c.Write(noise(100))
		hangUp(t, c)

		c = dial(t, n.addr)
		c.Write(name[:random.IntN(len(name)+1)])
		hangUp(t, c)

		c = dialAs(t, n.addr, "noise@127.0.0.1")
		for range 10 {
			frame := append([]byte{0, 0, 0, 0, 112, 131}, noise(1000)...)
			binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
			c.Write(frame)
		}
		c.Write(noise(1000)) // most likely the start of a frame that is too long
		hangUp(t, c)
	}
	wantChecks(t, caller, checks...)
	for _, c := range silent {
		untilClosed(t, c)
	}
}

// A caller that ended without closing its connection can reconnect, and is admitted immediately.
func TestComeBack(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	left := dialAs(t, n.addr, "caller@127.0.0.1")
	n.erl(nil, "ping", "get")
	untilClosed(t, left)
}

// Callers are admitted and served while other peers send nothing, or one byte at a time.
func TestSilentAndDripping(t *testing.T) {
	t.Parallel()
	const bound = patience / 4
	n := startNode(t, "")
	var silent net.Conn
	for range 200 {
		silent = dial(t, n.addr)
	}
	answered := 0 // calls answered while the node had not hung up on a silent peer
	var dripping sync.WaitGroup
	over := make(chan struct{})
	for i := range 50 {
		c := dial(t, n.addr)
		said := nameMessage(fmt.Sprintf("drip%d@127.0.0.1", i))
		if i%2 == 1 { // with the cookie
			c = dialAs(t, n.addr, fmt.Sprintf("drip%d@127.0.0.1", i))
			said = append([]byte{0, 1, 0, 0, 112, 131}, make([]byte, 1<<16)...)
		}
		dripping.Go(func() {
			for _, octet := range said {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
					c.Write([]byte{octet})
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), setupTime+time.Second)
	defer cancel()
	for calls := 0; ctx.Err() == nil || answered == 0 && calls < 20; calls++ {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		c, err := client.Dialer{Cookie: cookie, Addr: n.addr}.Dial(ctx, nodeName)
		if err != nil {
			t.Fatalf("after %d calls: not admitted within %v: %v", calls, bound, err)
		}
		if reply, err := c.Call(ctx, "flake", etf.Atom("get")); err != nil {
			t.Fatalf("after %d calls: not served within %v: %v, %v", calls, bound, reply, err)
		}
		c.Close()
		cancel()
		silent.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := silent.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			answered++
		} else if answered == 0 { // the node hung up before it answered a call
			silent = dial(t, n.addr)
		}
	}
	close(over)
	dripping.Wait()
	if answered == 0 {
		t.Error("no call was answered while other peers were silent")
	}
}

// setupTime is how long the node lets a handshake take.
const setupTime = 7 * time.Second

// tooSlow reports whether a handshake has taken so long, on a busy machine, that the node may end it.
func tooSlow(begun time.Time) bool { return time.Since(begun) >= setupTime }

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// dialAs connects as a node with this name.
func dialAs(t *testing.T, addr, name string) net.Conn {
	t.Helper()
	for {
		begun, c := time.Now(), dial(t, addr)
		_, err := handshake.Start(c, nodeName, handshake.Options{Node: name, Creation: 1, Cookie: cookie})
		switch {
		case err == nil:
			return c
		case !tooSlow(begun):
			t.Fatal(err)
		}
	}
}

// hangUp ends a connection and waits until the node has finished with it.
func hangUp(t *testing.T, c net.Conn) {
	t.Helper()
	c.(*net.TCPConn).CloseWrite()
	untilClosed(t, c)
}

func untilClosed(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience)) // from now, because other checks may have taken long
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the node did not close the connection from %s", c.LocalAddr())
	}
	c.Close()
}
