package node

import (
	"context"
	"fmt"
	"net"
	"strings"

	ergonode "github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/epmd"
)

// listen opens the port for other nodes. A name that stands for the loopback is
// listened for on the loopback alone.
func listen(ctx context.Context, o Options) (net.Listener, error) {
	addr := o.Listen
	if addr == "" {
		_, host, ok := strings.Cut(o.Name, "@")
		if !ok {
			return nil, fmt.Errorf("node name %q: want name@host", o.Name)
		}
		addr = net.JoinHostPort(host, "0")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	return l, nil
}

// registrar has the public port registered in place of Ergo's, which is the
// door's.
type registrar struct {
	epmd.Registrar
	node *Node
}

func newRegistrar(n *Node, o Options, l net.Listener) *registrar {
	r := &registrar{node: n}
	r.Mode = o.EPMD
	r.Log = o.Log
	addr := l.Addr().(*net.TCPAddr)
	r.Node = epmd.Node{
		Port: uint16(addr.Port),
		Type: epmd.Hidden,
	}
	if addr.IP.To4() == nil && !addr.IP.IsUnspecified() {
		r.Node.Protocol = epmd.TCPv6
	}
	return r
}

// Register is called by Ergo while it starts.
func (r *registrar) Register(ctx context.Context, name string, o ergonode.RegisterOptions) error {
	r.node.door.open(o.Port)
	return r.Registrar.Register(ctx, name, o)
}

// Resolve is called by Ergo before it dials.
func (r *registrar) Resolve(peer string) (ergonode.Route, error) {
	route, err := r.Registrar.Resolve(peer)
	route.Options.Handshake = dialler{r.node.door, r.node, peer}
	return route, err
}
