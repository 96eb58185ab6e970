package node

import "github.com/flake-go/flake/node/dist"

const (
	// memoryIdle is what the program takes when nobody is connected,
	// memoryPerConnection what each connected node adds, uncollected garbage included,
	// and memoryPerTLS what TLS may add to that.
	memoryIdle          = 14 << 20
	memoryPerConnection = 24 << 10
	memoryPerTLS        = 64 << 10
)

// within returns how many nodes may be connected in this memory, and what percentage
// of the shared limits they get: half of the rest, until that is all of them.
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

// greetsWithin returns how many handshakes may be under way when this many nodes may
// be connected: each takes about as much.
func greetsWithin(connections int) int { return min(max(connections/4, 32), MaxHandshakes) }
