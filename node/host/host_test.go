package host

import (
	"net"
	"net/netip"
	"testing"
)

func at(addr string) netip.Addr {
	return Of(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1)))
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"127.0.0.1", "127.9.9.9", true},
		{"127.0.0.1", "::1", true},
		{"127.0.0.1", "192.0.2.1", false},
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1", true},
	} {
		if same := at(tt.a) == at(tt.b); same != tt.same {
			t.Errorf("%s and %s: one host %t, want %t", tt.a, tt.b, same, tt.same)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "LocalHost.localdomain": true, "127.0.0.1": true, "127.0.1.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "myhost": false, "localhost.example": false, "128.0.0.1": false,
	} {
		if IsLoopback(name) != want {
			t.Errorf("%q: want %t", name, want)
		}
	}
}
