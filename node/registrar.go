package node

import (
	"context"
	"errors"
	"fmt"
	"net"

	ergo "github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/lib"
	ergonode "github.com/ergo-services/ergo/node"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/reserve"
)

// registrar is EPMD as Ergo wants it. It has the public port registered in place
// of Ergo's, which is the door's.
type registrar struct {
	*epmd.Keeper
	node *Node
}

var _ ergonode.Registrar = (*registrar)(nil)

func newRegistrar(n *Node, o Options, l net.Listener) *registrar {
	r := &registrar{Keeper: o.Keeper, node: n}
	if r.Keeper == nil {
		r.Keeper = &epmd.Keeper{Mode: o.EPMD, Log: o.Log}
	}
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

// Register is called by Ergo once, while it starts.
func (r *registrar) Register(ctx context.Context, name string, o ergonode.RegisterOptions) error {
	r.node.door.open(o.Port)
	return r.StartAs(ctx, name)
}

// Resolve is called by Ergo before it dials.
func (r *registrar) Resolve(peer string) (ergonode.Route, error) {
	if err := reserve.Left(); err != nil {
		return ergonode.Route{}, err
	}
	found, host, err := r.Find(r.node.ctx, peer)
	if errors.Is(err, epmd.ErrNotFound) || errors.Is(err, epmd.ErrOff) {
		err = fmt.Errorf("%w: %w", err, lib.ErrNoRoute)
	}
	route := ergonode.Route{Node: peer, Host: host, Port: found.Port}
	route.Options.Handshake = dialler{r.node.door, r.node, peer}
	return route, err
}

// ResolveProxy gives ErrProxyNoRoute itself: Ergo then connects directly.
func (*registrar) ResolveProxy(string) (ergonode.ProxyRoute, error) {
	return ergonode.ProxyRoute{}, lib.ErrProxyNoRoute
}

// RegisterProxy is not supported, as EPMD knows no proxies.
func (*registrar) RegisterProxy(string, int, ergonode.ProxyFlags) error { return lib.ErrUnsupported }

// UnregisterProxy is not supported.
func (*registrar) UnregisterProxy(string) error { return lib.ErrUnsupported }

// Config is not supported, as EPMD hands out no configuration.
func (*registrar) Config() (ergonode.RegistrarConfig, error) {
	return ergonode.RegistrarConfig{}, lib.ErrUnsupported
}

// ConfigItem is not supported.
func (*registrar) ConfigItem(string) (ergo.Term, error) { return nil, lib.ErrUnsupported }

// SetConfigUpdateCallback is not supported.
func (*registrar) SetConfigUpdateCallback(func(string, ergo.Term) error) error {
	return lib.ErrUnsupported
}
