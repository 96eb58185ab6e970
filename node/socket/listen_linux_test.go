package socket

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/flake-go/flake/node/reserve"
)

// The kernel buffers no more for a peer than twice what Admit sets: Linux doubles the value.
func TestUnsent(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listener(plain, slog.New(slog.DiscardHandler))
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		got, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
		if err != nil || got != 2*maxUnsent {
			t.Errorf("%d bytes, %v, want %d", got, err, 2*maxUnsent)
		}
	})
}

// However many callers connect, a file can be opened. When some have left, others can connect.
func TestListener(t *testing.T) {
	const left = 128
	fewFiles(t, left)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Listener(l, slog.New(slog.DiscardHandler))
	defer l.Close()
	in := make(chan net.Conn, left)
	go func() {
		defer l.Close()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "in")
			in <- c
		}
	}()
	// dial reports whether a caller can connect.
	var ours []net.Conn
	dial := func() bool {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		n, _ := io.ReadFull(c, make([]byte, 2))
		ours = append(ours, c)
		return n > 0
	}
	for dial() {
		if len(ours) > left {
			t.Fatal("all callers can connect")
		}
	}
	if len(ours) < left/4 { // both ends are ours
		t.Errorf("only %d callers could connect", len(ours)-1)
	}
	if err := reserve.Left(); !errors.Is(err, reserve.ErrFew) {
		t.Errorf("Left returned %v, want ErrFew", err)
	}
	for range reserve.Kept / 2 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	for range ours[1:] {
		(<-in).Close()
	}
	for _, c := range ours {
		c.Close()
	}
	if !dial() {
		t.Error("no caller can connect any more")
	}
	if err := reserve.Left(); err != nil {
		t.Error(err)
	}
	ours[len(ours)-1].Close()
	(<-in).Close()
}

// failing is a listener that fails once.
type failing struct {
	net.Listener
	failed bool
}

func (f *failing) Accept() (net.Conn, error) {
	if f.failed {
		return f.Listener.Accept()
	}
	f.failed = true
	return nil, syscall.EMFILE
}

// A failure does not end a listener.
func TestListenerGoesOn(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listener(&failing{Listener: inner}, slog.New(slog.DiscardHandler))
	caller, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close returned %v", err)
	}
}
