package node

import (
	"net"
	"testing"
)

func TestNetwork(t *testing.T) {
	for _, tt := range []struct{ addr, want string }{
		{"0.0.0.0:0", "tcp4"},
		{"192.0.2.1:4369", "tcp4"},
		{"[::]:0", "tcp"},
		{"[::ffff:192.0.2.1]:0", "tcp"},
		{"localhost:0", "tcp"},
		{":0", "tcp"},
	} {
		if got := Network(tt.addr); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.addr, got, tt.want)
		}
	}
}

// 0.0.0.0 is all of IPv4, and nothing of IPv6.
func TestListenIPv4(t *testing.T) {
	l, err := listen(t.Context(), Options{Name: "flake@127.0.0.1", Listen: "0.0.0.0:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if addr := l.Addr().(*net.TCPAddr); addr.IP.To4() == nil {
		t.Errorf("listens at %v", addr)
	}
}
