package node

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/host"
)

// The limits of who may be here at a time. A host is an address, in IPv6 the
// network of 64 bits that one host commonly has. The loopback is not counted as
// one: behind it are all nodes of this machine.
const (
	// MaxConnections bounds the nodes that are connected, and MaxPerHost those
	// of one host. One more is hung up on when it has shown the cookie. A name
	// that comes back takes the place that it had.
	MaxConnections = 4096
	MaxPerHost     = 1024

	// MaxHandshakes bounds the handshakes under way, and MaxHandshakesPerHost
	// those of one host. One more has the oldest hung up on: a handshake takes
	// milliseconds, so the oldest is the one that is not meant.
	MaxHandshakes        = 1024
	MaxHandshakesPerHost = 64

	// maxOffenders bounds the hosts that are remembered for a wrong cookie. One
	// more has any of them forgotten.
	maxOffenders = 4096
)

// A host that has shown a wrong cookie is answered later the next time: after
// firstDelay, twice as much with each further one, at most maxDelay. That is
// less than the 7 s that OTP waits for a handshake, so whoever has the right
// cookie and shares the address with one that has not still gets in. On the
// loopback others share it for certain, and are not kept waiting noticeably.
const (
	firstDelay       = 100 * time.Millisecond
	maxDelay         = 4 * time.Second
	maxDelayLoopback = 200 * time.Millisecond

	// offenceKept is how long a host is remembered after its last wrong cookie.
	offenceKept = time.Minute
)

// gate keeps count of who is here and says who may come in, by address alone.
// The handshake says who it is, and the node what becomes of a name.
type gate struct {
	now func() time.Time

	mu         sync.Mutex
	handshakes []*visit // the oldest first
	connected  map[netip.Addr]int
	total      int // of connected, the loopback included
	offenders  map[netip.Addr]offender
}

// visit is one handshake under way.
type visit struct {
	conn   net.Conn
	host   netip.Addr
	broken chan struct{} // closed to make room for another
}

func (v *visit) breakOff() {
	close(v.broken)
	v.conn.Close()
}

type offender struct {
	count int // wrong cookies
	last  time.Time
}

func newGate() *gate {
	return &gate{
		now:       time.Now,
		connected: make(map[netip.Addr]int),
		offenders: make(map[netip.Addr]offender),
	}
}

func isLoopback(host netip.Addr) bool { return !host.IsValid() }

// arrive counts a handshake in. If there are too many, it gives the one that has
// to make room, which the caller breaks off.
func (g *gate) arrive(c net.Conn) (v, oldest *visit) {
	v = &visit{c, host.Of(c.RemoteAddr()), make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch i := g.oldest(v.host); {
	case i >= 0:
		oldest = g.handshakes[i]
		g.handshakes = slices.Delete(g.handshakes, i, i+1)
	case len(g.handshakes) >= MaxHandshakes:
		oldest = g.handshakes[0]
		g.handshakes = slices.Delete(g.handshakes, 0, 1)
	}
	g.handshakes = append(g.handshakes, v)
	return v, oldest
}

// oldest finds the first handshake of a host that has as many as it may, or -1.
func (g *gate) oldest(host netip.Addr) int {
	if isLoopback(host) {
		return -1
	}
	first, n := -1, 0
	for i, v := range g.handshakes {
		if v.host == host {
			if n++; n == 1 {
				first = i
			}
		}
	}
	if n < MaxHandshakesPerHost {
		return -1
	}
	return first
}

// leave counts a handshake out, however it went, and reports whether it was
// still counted.
func (g *gate) leave(v *visit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.handshakes, v)
	if i >= 0 {
		g.handshakes = slices.Delete(g.handshakes, i, i+1)
	}
	return i >= 0
}

// counted reports whether a handshake is still counted.
func (g *gate) counted(v *visit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.handshakes, v)
}

// delay is how long a host has to wait for its next handshake.
func (g *gate) delay(host netip.Addr) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	o, ok := g.offenders[host]
	switch {
	case !ok:
		return 0
	case g.now().Sub(o.last) > offenceKept:
		delete(g.offenders, host)
		return 0
	}
	most := maxDelay
	if isLoopback(host) {
		most = maxDelayLoopback
	}
	const doublings = 10 // beyond any maximum
	return min(firstDelay<<min(o.count-1, doublings), most)
}

// offended remembers a wrong cookie. A right one does not make up for it: it may
// be another's at the same address.
func (g *gate) offended(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o, ok := g.offenders[host]
	if !ok && len(g.offenders) >= maxOffenders {
		for other := range g.offenders {
			delete(g.offenders, other)
			break
		}
	}
	now := g.now()
	if now.Sub(o.last) > offenceKept {
		o.count = 0
	}
	g.offenders[host] = offender{o.count + 1, now}
}

var (
	errFull     = errors.New("as many nodes are connected as may be")
	errHostFull = errors.New("as many nodes of this host are connected as may be")
)

// full says whether there is no place for one more connection, and why.
func (g *gate) full(host netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.total >= MaxConnections:
		return errFull
	case !isLoopback(host) && g.connected[host] >= MaxPerHost:
		return errHostFull
	}
	return nil
}

// up counts a connection in, down out.
func (g *gate) up(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total++
	g.connected[host]++
}

func (g *gate) down(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.connected[host]--; g.connected[host] <= 0 {
		delete(g.connected, host)
	}
}
