package host

import (
	"net"
	"net/netip"
	"slices"
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
		"localhost": true, "LocalHost.localdomain": true, "127.0.0.1": true, "127.0.1.1": true, "::1": true,
		"::ffff:127.0.0.1": true,
		"":                 false, "0.0.0.0": false, "::": false, "myhost": false, "localhost.example": false,
		"128.0.0.1": false,
	} {
		if IsLoopback(name) != want {
			t.Errorf("%q: want %t", name, want)
		}
	}
}

// conn is a connection from a host, which is empty for loopback.
type conn struct{ host string }

func (c *conn) Host() netip.Addr {
	addr, _ := netip.ParseAddr(c.host)
	return addr
}

func TestLine(t *testing.T) {
	l := Line[*conn]{Most: 5, PerHost: 2}
	a1, a2, b, home := &conn{"192.0.2.1"}, &conn{"192.0.2.1"}, &conn{"192.0.2.2"}, &conn{}
	check := func(after string, ofHost string, inAll bool, all ...*conn) {
		t.Helper()
		for _, c := range []*conn{a1, b, home} {
			if isOf, is := l.Full(c.Host()); isOf != (c.host == ofHost) || is != inAll {
				t.Errorf("%s: full for %q: %t, full overall: %t", after, c.host, isOf, is)
			}
		}
		if !slices.Equal(l.All, all) {
			t.Errorf("%s: %v, want %v", after, l.All, all)
		}
	}
	for _, c := range []*conn{a1, b, a2} {
		l.Add(c)
	}
	check("three are added", "192.0.2.1", false, a1, b, a2)
	if !l.Remove(a2) || l.Remove(a2) {
		t.Error("Remove did not return true once, and then false")
	}
	check("one is removed", "none", false, a1, b)
	h2, h3 := &conn{}, &conn{}
	for _, c := range []*conn{home, h2, h3} {
		l.Add(c)
	}
	check("three of loopback are added", "none", true, a1, b, home, h2, h3)
}

// A line without PerHost is limited only by Most.
func TestLineOfAnyHost(t *testing.T) {
	l := Line[*conn]{Most: 1}
	c := &conn{"192.0.2.1"}
	l.Add(c)
	if ofHost, inAll := l.Full(c.Host()); ofHost || !inAll {
		t.Errorf("full for a host: %t, full overall: %t", ofHost, inAll)
	}
}

func TestCrowd(t *testing.T) {
	a1, a2, b, home := &conn{"192.0.2.1"}, &conn{"192.0.2.1"}, &conn{"192.0.2.2"}, &conn{}
	var l Line[*conn]
	if host, n := l.Crowd(func(*conn) bool { return true }); n != 0 || host.IsValid() {
		t.Errorf("Crowd of an empty line: %v, %d", host, n)
	}
	if first := l.First(func(*conn) bool { return true }); first != nil {
		t.Errorf("First of an empty line: %v", first)
	}
	for _, c := range []*conn{home, b, a1, a2} {
		l.Add(c)
	}
	for range 2 {
		if host, n := l.Crowd(func(*conn) bool { return true }); host != a1.Host() || n != 2 {
			t.Errorf("all: %v, %d", host, n)
		}
	}
	if host, n := l.Crowd(func(c *conn) bool { return c != a2 && c != home }); host != b.Host() || n != 1 {
		t.Errorf("without one of each: %v, %d", host, n)
	}
	if first := l.First(func(c *conn) bool { return c.Host() == a1.Host() }); first != a1 {
		t.Errorf("first: %v, want %v", first, a1)
	}
}
