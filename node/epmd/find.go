package epmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrOff is returned in mode Off, where there is no EPMD to ask.
var ErrOff = errors.New("EPMD is off")

// Find asks the EPMD of a node's host where the node, name@host, listens. It returns
// ErrNotFound if the node is not registered. In mode Off it asks nobody: it returns our own
// port if that is fixed, as Erlang does with -erl_epmd_port, else ErrOff.
func (k *Keeper) Find(ctx context.Context, nodename string) (n Node, host string, err error) {
	name, host, err := splitName(nodename)
	if err != nil {
		return Node{}, "", err
	}
	switch {
	case k.Mode == Off && k.Fixed:
		return k.Node, host, nil
	case k.Mode == Off:
		return Node{}, "", fmt.Errorf("epmd: look up %q: %w", nodename, ErrOff)
	}
	n, err = Lookup(ctx, k.addrOf(host), name)
	return n, host, err
}

// StartAs is [Keeper.Start] for the node name@host.
func (k *Keeper) StartAs(ctx context.Context, nodename string) error {
	name, host, err := splitName(nodename)
	if err != nil {
		return err
	}
	k.Host, k.Node.Name = host, name
	return k.Start(ctx)
}

// addrOf returns the EPMD that knows the nodes of host: for our own host, the one we use.
func (k *Keeper) addrOf(host string) string {
	ip := net.ParseIP(host)
	if host == k.Host || host == "localhost" || ip != nil && ip.IsLoopback() {
		return k.Mode.addr(k.Port)
	}
	return joinPort(host, k.Port)
}

func splitName(nodename string) (name, host string, err error) {
	name, host, ok := strings.Cut(nodename, "@")
	if !ok || name == "" || host == "" || strings.Contains(host, "@") {
		return "", "", fmt.Errorf("epmd: node name %q is not of the form name@host", nodename)
	}
	return name, host, nil
}
