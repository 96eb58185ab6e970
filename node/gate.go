package node

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/flake-go/flake/node/distribution"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
)

// The limits on connections. A host is what [host.Of] returns; loopback does not count as a host.
const (
	// MaxConnections bounds the connected nodes, and MaxPerHost those on one host, unless Options
	// set other bounds. The connection of any additional node is closed after its handshake. A
	// node whose name is already connected may connect again.
	MaxConnections = 16384
	MaxPerHost     = 4096

	// MaxHandshakes bounds the concurrent handshakes with all hosts. To admit one more, another
	// is broken off: see [gate.stalled].
	MaxHandshakes = 1024

	// maxDelayed bounds the handshakes delayed because of a wrong cookie. To delay one more, the gate
	// ends the delay of the handshake that has waited longest.
	maxDelayed = MaxHandshakes / 2

	// maxOffenders bounds the hosts remembered because of a wrong cookie, and the nodes remembered because
	// another has the same name. To remember one more, the gate forgets an arbitrary one.
	maxOffenders = 4096
)

// After a wrong cookie, the next handshake from the same host is delayed by firstDelay. The delay
// doubles with each additional wrong cookie, up to maxDelay. maxDelay is less than the 7 s that OTP
// allows for a handshake, so an applicant with the right cookie at that address can still connect.
// On loopback, which many applicants share, the delay is too short to notice.
const (
	firstDelay       = 100 * time.Millisecond
	maxDelay         = 4 * time.Second
	maxDelayLoopback = 200 * time.Millisecond

	// offenceKept is how long a host is remembered after its last wrong cookie, and a node after it was
	// replaced.
	offenceKept = time.Minute
)

// gate counts handshakes and connections, and decides by address whether an applicant may
// connect. The handshake identifies the applicant, and the node decides whether to accept its
// name.
type gate struct {
	now func() time.Time

	mu         sync.Mutex            // guards the fields below, and each applicant's stage and name
	handshakes host.Line[*applicant] // in the order in which they reached their stage
	proven     map[string]*applicant // applicants that have proved that they have the cookie, by name
	connected  host.Line[connectedHost]
	offenders  map[netip.Addr]offender
	rivals     map[string]rival // by the name that they share
}

// applicant is a peer that has dialed this node and is not connected yet. Here loopback counts as
// a host.
type applicant struct {
	conn     net.Conn
	host     netip.Addr
	broken   chan struct{} // closed to make room for another applicant
	released chan struct{} // closed to end its delay

	stage stage
	name  string // set once the applicant has proved that it has the cookie

	admitted string // the applicant's name, if [meetings] has admitted it
}

func (v *applicant) Host() netip.Addr { return v.host }

// connectedHost is a connection in a [host.Line], which needs only the host of each element.
type connectedHost netip.Addr

func (h connectedHost) Host() netip.Addr { return netip.Addr(h) }

// stage is the progress of a handshake.
type stage int

const (
	arrived stage = iota // the applicant has not sent its name
	named                // the applicant has sent its name, but not proved that it has the cookie
	delayed              // like named, but delayed, because the host has sent a wrong cookie
)

type offender struct {
	count int // number of wrong cookies
	last  time.Time
}

// rival is a node whose connection was replaced by one from another address.
type rival struct {
	address string
	last    time.Time // when it was replaced
	known   bool      // it has been reported that it and the other node replace each other
}

func newGate() *gate {
	return &gate{
		now:        time.Now,
		handshakes: host.Line[*applicant]{Most: MaxHandshakes},
		proven:     make(map[string]*applicant),
		connected:  host.Line[connectedHost]{Most: MaxConnections, PerHost: MaxPerHost},
		offenders:  make(map[netip.Addr]offender),
		rivals:     make(map[string]rival),
	}
}

func (g *gate) limit(connections, perHost, handshakes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connected.Most, g.connected.PerHost, g.handshakes.Most = connections, perHost, handshakes
}

// arrive adds a handshake. If there are too many, it also returns one that must be broken off.
func (g *gate) arrive(c net.Conn) (v, out *applicant) {
	v = &applicant{
		conn: c, host: host.Of(c.RemoteAddr()),
		broken: make(chan struct{}), released: make(chan struct{}),
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

// stalled returns the handshake to break off: of the candidates, the one that has kept us waiting
// longest. Delayed applicants are ignored. If the applicants that have not sent their name outnumber
// those that have, only the former are candidates. If most candidates are on one host, only those
// on that host are considered, so that other hosts are not affected.
func (g *gate) stalled() *applicant {
	var n [delayed + 1]int
	for _, v := range g.handshakes.All {
		n[v.stage]++
	}
	last, all := arrived, n[arrived]
	if n[arrived] <= n[named] {
		last, all = named, n[arrived]+n[named]
	}
	waits := func(v *applicant) bool { return v.stage <= last }
	crowd, most := g.handshakes.Crowd(waits)
	return g.handshakes.First(func(v *applicant) bool { return waits(v) && (2*most <= all || v.host == crowd) })
}

// move sets the stage of a handshake, unless the handshake is no longer counted.
func (g *gate) move(v *applicant, to stage) {
	if g.handshakes.Remove(v) {
		v.stage = to
		g.handshakes.Add(v)
	}
}

// nameReceived records that an applicant has sent its name, and returns its delay.
func (g *gate) nameReceived(v *applicant) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	delay := g.delay(v.host)
	if delay == 0 {
		g.move(v, named)
		return 0
	}
	var first *applicant // the delayed handshake that has waited longest
	n := 0
	for _, v := range slices.Backward(g.handshakes.All) {
		if v.stage == delayed {
			n, first = n+1, v
		}
	}
	if n >= min(maxDelayed, g.handshakes.Most/2) {
		g.move(first, named)
		close(first.released)
	}
	g.move(v, delayed)
	return delay
}

func (g *gate) delayOver(v *applicant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.stage == delayed {
		g.move(v, named)
	}
}

// proved records that an applicant has proved that it has the cookie, and now waits to be connected.
// Only the latest applicant under a name may wait; the previous one, if any, is returned and must be
// broken off. The number of applicants that may wait is the number of connections left or the bound
// on handshakes, whichever is greater.
func (g *gate) proved(v *applicant, name string) (out *applicant, err error) {
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

func (g *gate) leave(v *applicant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handshakes.Remove(v)
	if g.proven[v.name] == v {
		delete(g.proven, v.name)
	}
}

func (g *gate) counted(v *applicant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proven[v.name] == v || slices.Contains(g.handshakes.All, v)
}

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
	if !host.IsValid() { // loopback
		most = maxDelayLoopback
	}
	const doublings = 10 // enough for both maxima
	return min(firstDelay<<min(o.count-1, doublings), most)
}

// offended records a wrong cookie from a host. A right cookie does not cancel the record, because
// it may come from another applicant at the same address.
func (g *gate) offended(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	makeRoom(g.offenders, host)
	o, now := g.offenders[host], g.now()
	if now.Sub(o.last) > offenceKept {
		o.count = 0
	}
	g.offenders[host] = offender{o.count + 1, now}
}

// makeRoom makes room for a key in a map of at most maxOffenders keys.
func makeRoom[K comparable, V any](m map[K]V, key K) {
	if _, ok := m[key]; ok || len(m) < maxOffenders {
		return
	}
	for other := range m {
		delete(m, other)
		return
	}
}

// replaced records that a node's connection is replaced by one from another address. It reports whether two
// nodes use that name: the new address is the one whose connection was replaced before. It does
// so only once, until they have stopped for a while.
func (g *gate) replaced(name, old, by string) (rivals bool) {
	if old == by {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	makeRoom(g.rivals, name)
	before, now := g.rivals[name], g.now()
	recent := now.Sub(before.last) <= offenceKept
	rivals = recent && before.address == by
	g.rivals[name] = rival{old, now, recent && (rivals || before.known)}
	return rivals && !before.known
}

var (
	errFull     = errors.New("the limit on connected nodes is reached (node.max_connections)")
	errHostFull = errors.New("the limit on connected nodes from this host is reached (node.max_connections_per_host)")
)

// full returns an error if one more connection from host would exceed a limit.
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

func (g *gate) up(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connected.Add(connectedHost(host))
}

func (g *gate) down(host netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connected.Remove(connectedHost(host))
}

const (
	// memoryIdle is the memory that the program takes without connections. Each connection takes
	// memoryPerConnection, which includes uncollected garbage. TLS adds memoryPerTLS to that.
	memoryIdle          = 14 << 20
	memoryPerConnection = 24 << 10
	memoryPerTLS        = 64 << 10
)

// room returns the bound on connected nodes, and the percentage of distribution's bounds on shared
// memory that the node may use. If the bound on nodes is below Options.Connections, lacks is the
// resource that is lacking; otherwise it is empty.
func (o Options) room() (connections, percent int, lacks string) {
	connections, percent = cmp.Or(o.Connections, MaxConnections), 100
	if o.Memory > 0 {
		var most int
		if most, percent = within(o.Memory, o.TLS != nil); most < connections {
			connections, lacks = most, "memory"
		}
	}
	if most := reserve.Rest(filesOfOthers); most < connections {
		connections, lacks = most, "file descriptors (ulimit -n)"
	}
	return connections, percent, lacks
}

// SetConnections changes [Options.Connections] and [Options.ConnectionsPerHost]. It does not
// close connections.
func (n *Node) SetConnections(most, perHost int) {
	o := n.options
	o.Connections, o.ConnectionsPerHost = most, perHost
	n.limit(o)
}

// limit sets the limits on connections. It returns the percentage of distribution's bounds,
// as room does.
func (n *Node) limit(o Options) (percent int) {
	connections, percent, lacks := o.room()
	if lacks != "" {
		n.options.Log.Warn("fewer nodes can be connected than the limit allows", "most", connections,
			"limit", cmp.Or(o.Connections, MaxConnections), "why", lacks)
	}
	handshakes := MaxHandshakes
	if o.Memory > 0 {
		handshakes = min(max(connections/4, 32), MaxHandshakes) // each takes about as much memory as a connection
	}
	n.gate.limit(connections, cmp.Or(o.ConnectionsPerHost, MaxPerHost), handshakes)
	return percent
}

// filesOfOthers is the number of descriptors reserved for handshakes, HTTP and EPMD.
const filesOfOthers = 3 * MaxHandshakes

// within returns the number of nodes that can be connected with this memory, and the percentage
// of distribution's bounds. Shared memory gets up to half of what is left after memoryIdle.
func within(memory int64, tls bool) (connections, percent int) {
	const shared = distribution.MaxShared + distribution.MaxSmall + distribution.MaxSpare
	rest := max(memory-memoryIdle, 2<<20)
	part := min(rest/2, shared)
	each := int64(memoryPerConnection)
	if tls {
		each += memoryPerTLS
	}
	return int((rest - part) / each), int(part * 100 / shared)
}
