package epmd

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// startFakeEPMD starts a server that answers every request with the same bytes, and then closes the
// connection unless hang is set. It returns the server's address.
func startFakeEPMD(t *testing.T, answer string, hang bool) string {
	t.Helper()
	l, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			readRequest(conn)
			io.WriteString(conn, answer)
			if hang {
				t.Cleanup(func() { conn.Close() })
			} else {
				conn.Close()
			}
		}
	}()
	return l.Addr().String()
}

func TestClientRefusesBadReplies(t *testing.T) {
	noLeak(t)
	ctx := testContext(t)
	register := func(addr string) error {
		_, err := Register(ctx, addr, Node{Name: "flake", Port: 1})
		return err
	}
	lookup := func(addr string) error { _, err := Lookup(ctx, addr, "flake"); return err }
	const short = "connection closed before the end of the reply"
	for _, tt := range []struct {
		ask    func(string) error
		answer string
		want   string
	}{
		{register, "", short},
		{register, "v\x00\x00\x00", short},
		{register, "HTTP/1.1", "ALIVE2_RESP: tag: 72, not 121"},
		{register, "y\x01\x00\x63", "already registered"},
		{lookup, "w", short},
		{lookup, "w\x00\x12\x67M\x00\x00\x06\x00\x05\xff\xffflake", short},
		{lookup, "w\x00\x12\x67M\x00\x00\x06\x00\x05\x00\x01\xff\x00\x00", "not UTF-8"},
		{lookup, "v\x00", "PORT2_RESP: tag: 118, not 119"},
		{lookup, "w\x07", "no node of that name"},
	} {
		err := tt.ask(startFakeEPMD(t, tt.answer, false))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.30q: %v, want %s", tt.answer, err, tt.want)
		}
	}
}

func TestClientStopsWithItsContext(t *testing.T) {
	noLeak(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	addr := startFakeEPMD(t, "w", true)
	done := make(chan error)
	go func() {
		_, err := Lookup(ctx, addr, "flake")
		done <- err
	}()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("Lookup: %v", err)
	}
}

// Lookup returns even if the EPMD keeps the connection open after its reply.
func TestLookupNeedsNoClose(t *testing.T) {
	addr := startFakeEPMD(t, "w\x00\x12\x67M\x00\x00\x06\x00\x05\x00\x05flake\x00\x00", true)
	if n, err := Lookup(testContext(t), addr, "flake"); err != nil || n.Port != 4711 {
		t.Errorf("Lookup = %+v, %v", n, err)
	}
}

func TestBadNamesAreNotSent(t *testing.T) {
	ctx := testContext(t)
	addr := startFakeEPMD(t, "", true)
	for _, name := range []string{"", "a\n", "\xff", strings.Repeat("n", 256)} {
		if _, err := Lookup(ctx, addr, name); err == nil || !strings.Contains(err.Error(), ": name: ") {
			t.Errorf("Lookup: %v", err)
		}
		if _, err := Register(ctx, addr, Node{Name: name}); err == nil || !strings.Contains(err.Error(), ": name: ") {
			t.Errorf("Register: %v", err)
		}
	}
}
