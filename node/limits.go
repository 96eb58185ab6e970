package node

import (
	"cmp"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/reserve"
)

const (
	// memoryIdle is what the program takes when nobody is connected,
	// memoryPerConnection what each connected node adds, uncollected garbage included,
	// and memoryPerTLS what TLS may add to that.
	memoryIdle          = 14 << 20
	memoryPerConnection = 24 << 10
	memoryPerTLS        = 64 << 10
)

// room returns how many nodes may be connected, what percentage of the shared limits
// they get, and what they lack to be as many as wanted, if anything.
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

// SetConnections changes the limits of [Options.Connections] and of those per host. Who is
// connected stays until another needs the place.
func (n *Node) SetConnections(most, perHost int) {
	o := n.options
	o.Connections, o.ConnectionsPerHost = most, perHost
	n.limit(o)
}

// limit sets the limits on connections, and returns what percentage of the shared limits
// they get.
func (n *Node) limit(o Options) (percent int) {
	connections, percent, lacks := o.room()
	if lacks != "" {
		n.log.Warn("fewer nodes can be connected than may be", "most", connections, "wanted", cmp.Or(o.Connections, MaxConnections), "why", lacks)
	}
	handshakes := MaxHandshakes
	if o.Memory > 0 {
		handshakes = greetsWithin(connections)
	}
	n.gate.limit(connections, cmp.Or(o.ConnectionsPerHost, MaxPerHost), handshakes)
	return percent
}

// filesOfOthers is how many descriptors are left to handshakes, to HTTP and to EPMD.
const filesOfOthers = 3 * MaxHandshakes

// within returns how many nodes fit in this memory, and what percentage of the shared
// limits they get: half of the rest, until that is all of them.
func within(memory int64, tls bool) (connections, percent int) {
	const shared = dist.MaxShared + dist.MaxSmall + dist.MaxSpare
	rest := max(memory-memoryIdle, 2<<20)
	part := min(rest/2, shared)
	each := int64(memoryPerConnection)
	if tls {
		each += memoryPerTLS
	}
	return int((rest - part) / each), int(part * 100 / shared)
}

// greetsWithin returns how many handshakes may be under way when this many nodes may
// be connected: each takes about as much.
func greetsWithin(connections int) int { return min(max(connections/4, 32), MaxHandshakes) }
