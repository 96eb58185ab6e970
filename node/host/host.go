// Package host tells hosts apart as limits count them, and has what limits of connections
// have in common: see [Line].
package host

import (
	"net"
	"net/netip"
	"strings"
)

// Of returns the host at an address: the address, in IPv6 the network of 64 bits that
// one host commonly has. The loopback is no host, for all callers of this machine are
// behind it: that gives the zero Addr.
func Of(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	switch {
	case ip.IsLoopback():
		return netip.Addr{}
	case ip.Is6():
		const network = 64
		prefix, _ := ip.Prefix(network)
		return prefix.Addr()
	}
	return ip
}

// IsLoopback tells whether a host's name is literally one of the loopback: localhost,
// localhost.localdomain, or an address of it. What other names resolve to does not count.
func IsLoopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || strings.EqualFold(name, "localhost.localdomain") ||
		err == nil && ip.Unmap().IsLoopback()
}
