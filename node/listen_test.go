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

// What a name resolves to does not matter, unless it is literally on the loopback.
func TestListen(t *testing.T) {
	for _, tt := range []struct {
		host string
		all  bool
	}{
		{"127.0.0.1", false},
		{"127.0.1.1", false},
		{"localhost", false},
		{"LOCALHOST", false},
		{"192.0.2.1", true}, // not of this machine
		{"no-such-host.invalid", true},
		{"127.0.0.1.invalid", true},
		{"2001:db8::1", true},
	} {
		l, err := listen(t.Context(), Options{Name: "flake@" + tt.host})
		if err != nil {
			t.Error(err)
			continue
		}
		ip := l.Addr().(*net.TCPAddr).IP
		if ip.IsUnspecified() != tt.all || ip.IsLoopback() == tt.all {
			t.Errorf("%s: listens at %v", tt.host, ip)
		}
		l.Close()
	}
}

// 0.0.0.0 is all of IPv4, and none of IPv6.
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
