// Package host identifies hosts for limits and counts their connections in a [Line].
package host

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Of returns the host of an address: the address itself or, for IPv6, its /64 network, because a
// single host commonly owns a whole /64. It returns the zero Addr for loopback addresses, which all
// callers on this machine share, and for addresses that are not TCP addresses.
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

// IsLoopback reports whether name is localhost, localhost.localdomain or a loopback address. It
// does not resolve names.
func IsLoopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || strings.EqualFold(name, "localhost.localdomain") ||
		err == nil && ip.Unmap().IsLoopback()
}

// Line holds connections in the order in which they were added, and their limits. Add does not
// check the limits: call Full first.
type Line[C Conn] struct {
	Most    int
	PerHost int // 0 means no limit; loopback never has one
	All     []C

	counts map[netip.Addr]int // used by Crowd
}

// Conn is a connection in a [Line].
type Conn interface {
	comparable
	Host() netip.Addr
}

// Full reports whether another connection from host would exceed PerHost, and whether it would
// exceed Most.
func (l *Line[C]) Full(host netip.Addr) (ofHost, inAll bool) {
	if l.PerHost > 0 && len(l.All) >= l.PerHost && host.IsValid() {
		n := 0
		for _, c := range l.All {
			if c.Host() == host {
				n++
			}
		}
		ofHost = n >= l.PerHost
	}
	return ofHost, len(l.All) >= l.Most
}

// Crowd counts the connections for which counted returns true. It returns the host with the most of
// them, and their number.
func (l *Line[C]) Crowd(counted func(C) bool) (host netip.Addr, n int) {
	if l.counts == nil {
		l.counts = make(map[netip.Addr]int)
	}
	clear(l.counts)
	for _, c := range l.All {
		if counted(c) {
			l.counts[c.Host()]++
			if l.counts[c.Host()] > n {
				host, n = c.Host(), l.counts[c.Host()]
			}
		}
	}
	return host, n
}

// First returns the first connection for which accept returns true, or the zero C.
func (l *Line[C]) First(accept func(C) bool) (first C) {
	if i := slices.IndexFunc(l.All, accept); i >= 0 {
		first = l.All[i]
	}
	return first
}

// Add appends a connection.
func (l *Line[C]) Add(c C) { l.All = append(l.All, c) }

// Remove removes a connection and reports whether it was in the line.
func (l *Line[C]) Remove(c C) bool {
	i := slices.Index(l.All, c)
	if i >= 0 {
		l.All = slices.Delete(l.All, i, i+1)
	}
	return i >= 0
}
