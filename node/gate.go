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

	// MaxHandshakes bounds the handshakes under way, of one host or of many. One
	// more has another hung up on: see [gate.stalled].
	MaxHandshakes = 1024

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
	handshakes []*visit // in the order in which they came, or said their name
	silent     crowd    // those that have not
	named      crowd    // those that have
	connected  map[netip.Addr]int
	total      int // of connected, the loopback included
	offenders  map[netip.Addr]offender
}

// visit is one handshake under way. For the gate, the loopback is a host here.
type visit struct {
	conn   net.Conn
	host   netip.Addr
	broken chan struct{} // closed to make room for another
	named  bool          // it has said its name
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
		silent:    crowd{hosts: make(map[netip.Addr]int)},
		named:     crowd{hosts: make(map[netip.Addr]int)},
		connected: make(map[netip.Addr]int),
		offenders: make(map[netip.Addr]offender),
	}
}

func isLoopback(host netip.Addr) bool { return !host.IsValid() }

// arrive counts a handshake in. If there are too many, it returns the one that has
// to make room, which the caller breaks off.
func (g *gate) arrive(c net.Conn) (v, out *visit) {
	v = &visit{conn: c, host: host.Of(c.RemoteAddr()), broken: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.handshakes) >= MaxHandshakes {
		out = g.stalled()
		g.remove(out)
	}
	g.handshakes = append(g.handshakes, v)
	g.silent.add(v.host, 1)
	return v, out
}

// stalled finds the one to break off. Those that have not said their name, and those
// that have, get half of the places each: of whichever has more, it is the one that has
// waited longest. If most of them are of one host it is one of that, so that others are
// not hurried by it.
func (g *gate) stalled() *visit {
	named := g.silent.n <= MaxHandshakes/2
	c := &g.silent
	if named {
		c = &g.named
	}
	most, found := c.most()
	return g.handshakes[slices.IndexFunc(g.handshakes, func(v *visit) bool {
		return v.named == named && (!found || v.host == most)
	})]
}

// remove reports whether a handshake was still counted.
func (g *gate) remove(v *visit) bool {
	i := slices.Index(g.handshakes, v)
	if i < 0 {
		return false
	}
	g.handshakes = slices.Delete(g.handshakes, i, i+1)
	if v.named {
		g.named.add(v.host, -1)
	} else {
		g.silent.add(v.host, -1)
	}
	return true
}

// spoke notes that a caller has said its name.
func (g *gate) spoke(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.remove(v) {
		v.named = true
		g.handshakes = append(g.handshakes, v)
		g.named.add(v.host, 1)
	}
}

// crowd counts handshakes by host.
type crowd struct {
	n     int // of all hosts
	hosts map[netip.Addr]int
}

func (c *crowd) add(host netip.Addr, d int) {
	c.n += d
	if c.hosts[host] += d; c.hosts[host] == 0 {
		delete(c.hosts, host)
	}
}

// most finds the host of more than half, if there is one.
func (c *crowd) most() (netip.Addr, bool) {
	for host, n := range c.hosts {
		if n > c.n/2 {
			return host, true
		}
	}
	return netip.Addr{}, false
}

// leave counts a handshake out, however it went, and reports whether it was
// still counted.
func (g *gate) leave(v *visit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.remove(v)
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
