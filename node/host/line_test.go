package host

import (
	"net/netip"
	"slices"
	"testing"
)

// conn is a connection of a host, which is empty for the loopback.
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
				t.Errorf("%s: full for %q: %t, in all %t", after, c.host, isOf, is)
			}
		}
		if !slices.Equal(l.All, all) {
			t.Errorf("%s: %v, want %v", after, l.All, all)
		}
	}
	for _, c := range []*conn{a1, b, a2} {
		l.Add(c)
	}
	check("three came", "192.0.2.1", false, a1, b, a2)
	if !l.Remove(a2) || l.Remove(a2) {
		t.Error("removed: want the one that is in the line, once")
	}
	check("one has gone", "none", false, a1, b)
	h2, h3 := &conn{}, &conn{}
	for _, c := range []*conn{home, h2, h3} {
		l.Add(c)
	}
	check("those of the loopback came", "none", true, a1, b, home, h2, h3)
}

// A line without a limit per host is full only in all.
func TestLineOfAnyHost(t *testing.T) {
	l := Line[*conn]{Most: 1}
	c := &conn{"192.0.2.1"}
	l.Add(c)
	if ofHost, inAll := l.Full(c.Host()); ofHost || !inAll {
		t.Errorf("full for a host %t, in all %t", ofHost, inAll)
	}
}
