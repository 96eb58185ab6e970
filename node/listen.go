package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
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
	l, err := lc.Listen(ctx, Network(addr), addr)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	return l, nil
}

// Network gives the network to listen in at an address, host:port: tcp4 if the host
// is an address of IPv4, as package net takes 0.0.0.0 in tcp for all of IPv6 too.
func Network(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}
