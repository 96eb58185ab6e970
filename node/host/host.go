// Package host tells hosts apart as limits count them.
package host

import (
	"net"
	"net/netip"
)

// Of gives the host at an address: the address, in IPv6 the network of 64 bits that
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
