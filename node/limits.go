package node

import (
	"cmp"

	"github.com/flake-go/flake/node/dist"
	"github.com/flake-go/flake/node/reserve"
)

const (
	// memoryIdle is the memory of the program without connections, memoryPerConnection that
	// of a connection, with uncollected garbage, and memoryPerTLS the additional memory of
	// one with TLS.
	memoryIdle          = 14 << 20
	memoryPerConnection = 24 << 10
	memoryPerTLS        = 64 << 10
)

// room returns the bound on connected nodes, the percentage of dist's bounds on shared
// memory, and, if the bound is below Options.Connections, the resource that is lacking.
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

// limit sets the limits on connections, and returns the percentage of dist's bounds.
func (n *Node) limit(o Options) (percent int) {
	connections, percent, lacks := o.room()
	if lacks != "" {
		n.log.Warn("fewer nodes can be connected than may be", "most", connections, "limit", cmp.Or(o.Connections, MaxConnections), "why", lacks)
	}
	handshakes := MaxHandshakes
	if o.Memory > 0 {
		handshakes = greetsWithin(connections)
	}
	n.gate.limit(connections, cmp.Or(o.ConnectionsPerHost, MaxPerHost), handshakes)
	return percent
}

// filesOfOthers is the number of descriptors for handshakes, HTTP and EPMD.
const filesOfOthers = 3 * MaxHandshakes

// within returns the number of nodes that can be connected with this memory, and the
// percentage of dist's bounds. Shared memory gets up to half of the memory that is left.
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

// greetsWithin returns the bound on handshakes for a bound on connections, because one needs
// about as much memory as the other.
func greetsWithin(connections int) int { return min(max(connections/4, 32), MaxHandshakes) }
