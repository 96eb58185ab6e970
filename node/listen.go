package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/reserve"
)

// listen opens the port for other nodes: at the address given, else at the loopback if
// the name is there, else at all addresses. It does not resolve the name: that may
// lead to another machine, as a virtual address, or to the loopback, as in Debian's
// /etc/hosts.
func listen(ctx context.Context, o Options) (net.Listener, error) {
	addr := o.Listen
	if addr == "" {
		_, name, _ := strings.Cut(o.Name, "@")
		if !host.IsLoopback(name) {
			name = ""
		}
		addr = net.JoinHostPort(name, "0")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, Network(addr), addr)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	return reserve.Listener(l, o.Log), nil
}

// Network returns the network to listen in at an address, host:port: tcp4 if the host
// is an IPv4 address, as package net takes 0.0.0.0 in tcp for all of IPv6 too.
func Network(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}
