package host

import (
	"net/netip"
	"slices"
)

// Line holds connections in the order added, and their limits. Check Full before Add.
type Line[C Conn] struct {
	Most    int
	PerHost int // 0: as Most; the loopback is no host
	All     []C
}

// Conn is a connection in a [Line].
type Conn interface {
	comparable
	Host() netip.Addr
}

// Full reports whether one more of a host is too many: of that host, and in all.
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

// Add puts a connection at the end.
func (l *Line[C]) Add(c C) { l.All = append(l.All, c) }

// Remove takes a connection out, and reports whether it was in the line.
func (l *Line[C]) Remove(c C) bool {
	i := slices.Index(l.All, c)
	if i >= 0 {
		l.All = slices.Delete(l.All, i, i+1)
	}
	return i >= 0
}
