package epmd

import (
	"context"
	"net"
)

// serve starts an own EPMD at addr, on the loopback of IPv6, where nodes of inet6_tcp
// register, and at the node's host for the peers that look there.
func (k *Keeper) serve(ctx context.Context, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := NewServer(k.Log)
	k.server = s
	k.serving.Go(func() { s.Serve(l) })
	if l, err := net.Listen("tcp", joinPort(loopback6, k.Port)); err == nil {
		k.serving.Go(func() { s.Serve(l) })
	} else {
		k.Log.Debug("epmd: not served over IPv6", "err", err) // the system may have none
	}
	for _, addr := range k.hostAddrs(ctx) {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			// The node is registered all the same, and reached by those on this host.
			k.Log.Warn("epmd: not served at the node's host", "host", k.Host, "err", err)
			continue
		}
		k.serving.Go(func() { s.Serve(l) })
	}
	return nil
}

// hostAddrs is where the node's host is reached, apart from the loopback addresses served anyway.
func (k *Keeper) hostAddrs(ctx context.Context) []string {
	if k.Host == "" {
		return nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", k.Host)
	if err != nil {
		k.Log.Warn("epmd: not served at the node's host", "host", k.Host, "err", err)
	}
	var addrs []string
	for _, ip := range ips {
		if host := ip.Unmap().String(); host != loopback && host != loopback6 {
			addrs = append(addrs, joinPort(host, k.Port))
		}
	}
	return addrs
}

func (k *Keeper) stopServing() {
	if k.server != nil {
		k.server.Close()
		k.serving.Wait()
		k.server = nil
	}
}
