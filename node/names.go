package node

import (
	"slices"
	"strings"
	"sync"

	"github.com/flake-go/flake/node/handshake"
)

// names are those given to peers that came without one. A free name is given again, to
// a peer of the same host and with another creation, as OTP does: every name remains
// an atom wherever it goes.
type names struct {
	mu    sync.Mutex
	given map[string]uint32 // the creation
	free  []freeName        // at most keptNames, the most recent last
}

const keptNames = 4096

type freeName struct {
	node     string
	creation uint32
}

func newNames() *names { return &names{given: make(map[string]uint32)} }

// give returns a name at a host that no other peer has.
func (n *names) assign(host string, taken func(node string) bool) (node string, creation uint32) {
	node, creation = handshake.NewName(host)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range slices.Backward(n.free) {
		if strings.HasSuffix(f.node, "@"+host) && !taken(f.node) {
			n.free = slices.Delete(n.free, i, i+1)
			node, creation = f.node, f.creation
			break
		}
	}
	n.given[node] = creation
	return node, creation
}

// takeBack frees a name if it was given.
func (n *names) takeBack(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	creation, ok := n.given[node]
	if !ok {
		return
	}
	delete(n.given, node)
	if creation++; creation == 0 {
		creation = 1
	}
	if len(n.free) >= keptNames {
		n.free = slices.Delete(n.free, 0, 1)
	}
	n.free = append(n.free, freeName{node, creation})
}
