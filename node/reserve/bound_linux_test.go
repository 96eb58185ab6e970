package reserve

import (
	"log/slog"
	"net"
	"syscall"
	"testing"
)

// The kernel buffers no more for a peer than twice what Bound sets: Linux doubles the value.
func TestBound(t *testing.T) {
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
		if err != nil || got != 2*MaxUnsent {
			t.Errorf("%d bytes, %v, want %d", got, err, 2*MaxUnsent)
		}
	})
}
