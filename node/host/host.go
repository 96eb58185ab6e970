// Package host identifies hosts as limits count them, and holds what limits of
// connections have in common: see [Line].
package host

import (
	"net"
	"net/netip"
	"strings"
)

// Of returns the host at an address: the address, or in IPv6 the /64 network that one
// host commonly has. For the loopback it returns the zero Addr, because all callers of
// this machine are behind it.
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

// IsLoopback reports whether a host's name is literally one of the loopback:
// localhost, localhost.localdomain, or an address of it. It does not resolve names.
func IsLoopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || strings.EqualFold(name, "localhost.localdomain") ||
		err == nil && ip.Unmap().IsLoopback()
}
