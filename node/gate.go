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

// The limits on connections. A host is an address, in IPv6 the /64 network that one
// host commonly has. The loopback does not count as a host: all nodes of this
// machine are behind it.
const (
	// MaxConnections bounds the connected nodes, and MaxPerHost those of one host,
	// unless Options do. A further node is hung up on after it has shown the cookie. A
	// name that comes back keeps its place.
	MaxConnections = 16384
	MaxPerHost     = 4096

	// MaxHandshakes bounds the handshakes under way, of all hosts together. One more
	// has another hung up on: see [gate.stalled].
	MaxHandshakes = 1024

	// maxHeld bounds the handshakes that are delayed for a wrong cookie. One more
	// releases the one that has waited longest.
	maxHeld = MaxHandshakes / 2

	// maxOffenders bounds the hosts remembered for a wrong cookie. One more makes the
	// gate forget any one of them.
	maxOffenders = 4096
)

// A host that has shown a wrong cookie is answered later the next time: after
// firstDelay, doubled with each further one, up to maxDelay. That is less than the 7
// s that OTP allows a handshake, so a caller with the right cookie still gets in
// from the same address. On the loopback, which callers certainly share, the delay
// is too short to notice.
const (
	firstDelay       = 100 * time.Millisecond
	maxDelay         = 4 * time.Second
	maxDelayLoopback = 200 * time.Millisecond

	// offenceKept is how long a host is remembered after its last wrong cookie.
	offenceKept = time.Minute
)

// gate counts the callers and decides who may come in, by address alone. The
// handshake identifies the caller, and the node decides about its name.
type gate struct {
	now func() time.Time

	mu         sync.Mutex
	handshakes host.Line[*visit] // in the order in which they reached their stage
	proven     map[string]*visit // the callers that have shown the cookie, by name
	connected  host.Line[at]
	offenders  map[netip.Addr]offender
}

// visit is one handshake under way. Here the gate treats the loopback as a host.
type visit struct {
	conn    net.Conn
	host    netip.Addr
	broken  chan struct{} // closed to make room for another
	hurried chan struct{} // closed to end its delay

	stage stage
	name  string // once it has shown the cookie
}

func (v *visit) Host() netip.Addr { return v.host }

// at is a connection, of which only the host matters.
type at netip.Addr

func (a at) Host() netip.Addr { return netip.Addr(a) }

// stage is how far a handshake has come.
type stage int

const (
	arrived stage = iota // it has not yet sent its name
	named                // it has, but has not yet shown the cookie
	held                 // it has, and is delayed for a wrong cookie of its host
)

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
		now:        time.Now,
		handshakes: host.Line[*visit]{Most: MaxHandshakes},
		proven:     make(map[string]*visit),
		connected:  host.Line[at]{Most: MaxConnections, PerHost: MaxPerHost},
		offenders:  make(map[netip.Addr]offender),
	}
}

// limit sets how many nodes may be connected, and handshakes under way.
func (g *gate) limit(connections, perHost, handshakes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connected.Most, g.connected.PerHost, g.handshakes.Most = connections, perHost, handshakes
}

func isLoopback(host netip.Addr) bool { return !host.IsValid() }

// arrive counts a handshake in. If there are too many, it returns one to make room,
// which the caller breaks off.
func (g *gate) arrive(c net.Conn) (v, out *visit) {
	v = &visit{
		conn: c, host: host.Of(c.RemoteAddr()),
		broken: make(chan struct{}), hurried: make(chan struct{}),
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, full := g.handshakes.Full(v.host); full {
		out = g.stalled()
		g.handshakes.Remove(out)
	}
	g.handshakes.Add(v)
	return v, out
}

// stalled finds the handshake to break off: of the callers that keep us waiting, the
// longest waiting. If most have not sent their name it is one of these, and if most
// of those are of one host it is one of that host's, so that others are not hurried.
func (g *gate) stalled() *visit {
	var n [held + 1]int
	for _, v := range g.handshakes.All {
		n[v.stage]++
	}
	last := arrived
	if n[arrived] <= n[named] {
		last = named
	}
	most, found := g.most(last)
	i := slices.IndexFunc(g.handshakes.All, func(v *visit) bool { return v.stage <= last && (!found || v.host == most) })
	return g.handshakes.All[i]
}

// most finds the host of more than half of the handshakes that are no further than
// last, if there is one.
func (g *gate) most(last stage) (host netip.Addr, found bool) {
	// A host with more than half remains when each is paired with another's.
	left, more := 0, 0
	for _, v := range g.handshakes.All {
		switch {
		case v.stage > last:
		case left == 0:
			host, left = v.host, 1
		case v.host == host:
			left++
		default:
			left--
		}
	}
	for _, v := range g.handshakes.All {
		switch {
		case v.stage > last:
		case v.host == host:
			more++
		default:
			more--
		}
	}
	return host, more > 0
}

// move notes that a handshake, if still counted, has reached a stage.
func (g *gate) move(v *visit, to stage) {
	if g.handshakes.Remove(v) {
		v.stage = to
		g.handshakes.Add(v)
	}
}

// spoke notes that a caller has sent its name, and returns how long to delay it.
func (g *gate) spoke(v *visit) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	delay := g.delay(v.host)
	if delay == 0 {
		g.move(v, named)
		return 0
	}
	if n, first := g.held(); n >= min(maxHeld, g.handshakes.Most/2) {
		g.move(first, named)
		close(first.hurried)
	}
	g.move(v, held)
	return delay
}

// held counts the delayed callers, and finds the one that has waited longest.
func (g *gate) held() (n int, first *visit) {
	for _, v := range slices.Backward(g.handshakes.All) {
		if v.stage == held {
			n, first = n+1, v
		}
	}
	return n, first
}

// goesOn notes that a caller's delay is over.
func (g *gate) goesOn(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.stage == held {
		g.move(v, named)
	}
}

// proved notes that a caller has shown the cookie and now waits to come in. Of a name
// only the last waits: proved returns the one before it, for the caller to break off.
// No more wait in all than may still be connected, or shake hands.
func (g *gate) proved(v *visit, name string) (out *visit, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out = g.proven[name]
	if out == nil && len(g.proven) >= max(g.connected.Most-len(g.connected.All), g.handshakes.Most) {
		return nil, errFull
	}
	if !g.handshakes.Remove(v) {
		return nil, errBrokenOff
	}
	v.name = name
	g.proven[name] = v
	return out, nil
}

// leave counts a handshake out, however it went.
func (g *gate) leave(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handshakes.Remove(v)
	if g.proven[v.name] == v {
		delete(g.proven, v.name)
	}
}

// counted reports whether a handshake is still counted.
func (g *gate) counted(v *visit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proven[v.name] == v || slices.Contains(g.handshakes.All, v)
}

// delay returns how long a host has to wait for its next handshake.
func (g *gate) delay(host netip.Addr) time.Duration {
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
	const doublings = 10 // more than any maximum needs
	return min(firstDelay<<min(o.count-1, doublings), most)
}

// offended remembers a wrong cookie. A right one does not cancel it: it may be from
// another caller at the same address.
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
	errFull     = errors.New("the limit of connected nodes is reached (node.max_connections)")
	errHostFull = errors.New("the limit of connected nodes of this host is reached (node.max_connections_per_host)")
)

// full returns why there is no place for one more connection, or nil.
func (g *gate) full(host netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch ofHost, inAll := g.connected.Full(host); {
	case ofHost:
		return errHostFull
	case inAll:
		return errFull
	}
	return nil
}

// up counts a connection in, down out.
func (g *gate) up(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connected.Add(at(host))
}

func (g *gate) down(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connected.Remove(at(host))
}
