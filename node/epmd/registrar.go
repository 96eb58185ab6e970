package epmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/ergo-services/ergo/etf"
	"github.com/ergo-services/ergo/lib"
	"github.com/ergo-services/ergo/node"
)

// Registrar lets an Ergo node register with and look up in EPMD. Of its keeper, the node sets
// the mode, the log and Node.Port, the port of its public listener, which is registered in
// place of Ergo's own; Register fills in the name and host.
type Registrar struct{ Keeper }

var _ node.Registrar = (*Registrar)(nil)

// Register starts the keeper. Ergo calls it once, while it starts.
func (r *Registrar) Register(ctx context.Context, nodename string, _ node.RegisterOptions) error {
	name, host, err := splitName(nodename)
	if err != nil {
		return err
	}
	r.Host, r.Node.Name = host, name
	return r.Start(ctx)
}

// Resolve asks the EPMD of a node's host where the node listens.
func (r *Registrar) Resolve(peername string) (node.Route, error) {
	name, host, err := splitName(peername)
	if err != nil {
		return node.Route{}, err
	}
	if r.Mode == Off {
		return node.Route{}, fmt.Errorf("epmd: look up %q: EPMD is off: %w", peername, lib.ErrNoRoute)
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	n, err := Lookup(ctx, r.addrOf(host), name)
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %w", err, lib.ErrNoRoute)
	}
	if err != nil {
		return node.Route{}, err
	}
	return node.Route{Node: peername, Host: host, Port: n.Port}, nil
}

// addrOf is the EPMD that knows the nodes of host: for our own host the one we use.
func (r *Registrar) addrOf(host string) string {
	ip := net.ParseIP(host)
	if host == r.Host || host == "localhost" || ip != nil && ip.IsLoopback() {
		return r.Mode.addr(r.Port)
	}
	return joinPort(host, r.Port)
}

func splitName(nodename string) (name, host string, err error) {
	name, host, ok := strings.Cut(nodename, "@")
	if !ok || name == "" || host == "" || strings.Contains(host, "@") {
		return "", "", fmt.Errorf("epmd: node name %q is not of the form name@host", nodename)
	}
	return name, host, nil
}

// ResolveProxy gives ErrProxyNoRoute itself: Ergo then connects directly.
func (*Registrar) ResolveProxy(string) (node.ProxyRoute, error) {
	return node.ProxyRoute{}, lib.ErrProxyNoRoute
}

// RegisterProxy is not supported, as EPMD knows no proxies.
func (*Registrar) RegisterProxy(string, int, node.ProxyFlags) error { return lib.ErrUnsupported }

// UnregisterProxy is not supported.
func (*Registrar) UnregisterProxy(string) error { return lib.ErrUnsupported }

// Config is not supported, as EPMD hands out no configuration.
func (*Registrar) Config() (node.RegistrarConfig, error) {
	return node.RegistrarConfig{}, lib.ErrUnsupported
}

// ConfigItem is not supported.
func (*Registrar) ConfigItem(string) (etf.Term, error) { return nil, lib.ErrUnsupported }

// SetConfigUpdateCallback is not supported.
func (*Registrar) SetConfigUpdateCallback(func(string, etf.Term) error) error {
	return lib.ErrUnsupported
}
