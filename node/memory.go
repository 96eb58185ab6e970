package node

import "github.com/flake-go/flake/node/dist"

const (
	// memoryIdle is what the program takes when nobody is connected, and
	// memoryPerConnection what a node that is takes of its own, what the collector has
	// not yet found included, and memoryPerTLS what TLS may take besides.
	memoryIdle          = 14 << 20
	memoryPerConnection = 24 << 10
	memoryPerTLS        = 64 << 10
)

// within tells how many nodes may be connected in so much memory, and what percentage
// there is of what they share: it gets half of what is left, until it has all.
func within(memory int64, tls bool) (connections, percent int) {
	const shared = dist.MaxShared + dist.MaxSmall + dist.MaxSpare
	rest := max(memory-memoryIdle, 2<<20)
	part := min(rest/2, shared)
	each := int64(memoryPerConnection)
	if tls {
		each += memoryPerTLS
	}
	return int(min((rest-part)/each, MaxConnections)), int(part * 100 / shared)
}

// greetsWithin is how many handshakes may be under way where so many nodes may be
// connected: each takes about as much.
func greetsWithin(connections int) int { return min(max(connections/4, 32), MaxHandshakes) }
