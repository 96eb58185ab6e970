// Package traffic describes a node's traffic with other nodes, for the node that counts it and the door that shows it.
package traffic

import (
	"net"
	"time"

	"github.com/flake-go/flake/node/latency"
)

// Counts are counts since the node started.
type Counts struct {
	Connections       int               // current connections
	Connected         uint64            // current and past connections
	Received, Sent    uint64            // bytes on all of these
	HandshakeFailures map[string]uint64 // failed handshakes with nodes that dialed us, by reason
	Closes            map[string]uint64 // connections closed because of peer behavior, by reason
	Latency           latency.Counts    // how long calls took
}

// Peer is a connected node.
type Peer struct {
	Name    string
	Address net.Addr
	Since   time.Time
	IDs     uint64 // number of ids sent to it since Since
}
