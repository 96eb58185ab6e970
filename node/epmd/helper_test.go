package epmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testPatience is the time after which a test fails if it is still waiting.
const testPatience = 5 * time.Minute

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	end := time.After(testPatience)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !cond() {
		select {
		case <-poll.C:
		case <-end:
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}

// noLeak fails the test if goroutines of this package are left after cleanup.
func noLeak(t *testing.T) {
	t.Cleanup(func() {
		var left []string
		await(t, "all goroutines ended", func() bool {
			buf := make([]byte, 1<<20)
			left = left[:0]
			for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				if strings.Contains(g, "created by github.com/flake-go/flake/node/epmd.") {
					left = append(left, g)
				}
			}
			return len(left) == 0
		})
	})
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	t.Cleanup(cancel)
	return ctx
}

var quiet = slog.New(slog.DiscardHandler)

// startServer serves on a free port, or at addr, until the test ends.
func startServer(t *testing.T, addr string, prepare func(*Server)) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(quiet)
	if prepare != nil {
		prepare(s)
	}
	s.Serve(l)
	t.Cleanup(s.Close)
	return s, l.Addr().String()
}

const anyPort = "127.0.0.1:0"

// freePort returns a port that is not open. The port is below the range from which the system
// chooses ports, so that no other test gets it.
func freePort(t *testing.T) uint16 {
	t.Helper()
	for {
		port := uint16(20_000 + rand.IntN(10_000))
		l, err := net.Listen("tcp", JoinPort(loopback, port))
		switch {
		case err == nil:
			l.Close()
			return port
		case !errors.Is(err, syscall.EADDRINUSE):
			t.Fatal(err)
		}
	}
}

// talk sends raw bytes and returns the answer up to the end of the connection.
func talk(t *testing.T, addr, raw string) string {
	t.Helper()
	conn := dialTest(t, addr)
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	// A server that closes a connection with unread bytes resets it; the error is ignored.
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func dialTest(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testPatience))
	return conn
}

func frame(s string) string { return fmt.Sprintf("%c%c%s", 0, len(s), s) }
