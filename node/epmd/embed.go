package epmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/flake-go/flake/node/reserve"
)

// provide starts an EPMD at a port that is not open: like erl, OTP's daemon if it is installed,
// because that does not end with this process, or else our own.
func (k *Keeper) provide(ctx context.Context) error {
	if path, err := exec.LookPath(k.program); err == nil {
		err := k.startDaemon(ctx, path)
		if err == nil || ctx.Err() != nil {
			return err
		}
		k.Log.Warn("epmd: cannot start the daemon; serving an EPMD instead", "file", path, "err", err)
	}
	err := k.serve()
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil // another node has started its EPMD first
	}
	return err
}

// startDaemon runs epmd -daemon and waits until it listens.
func (k *Keeper) startDaemon(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := exec.CommandContext(ctx, path, "-daemon", "-port", fmt.Sprint(k.Port)).Run(); err != nil {
		return err
	}
	const poll = 10 * time.Millisecond
	for {
		conn, err := dial(ctx, k.Mode.addr(k.Port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(poll):
		}
	}
}

// serve starts our own EPMD at all addresses, or fails.
func (k *Keeper) serve() error {
	ls, err := listen(k.Port)
	if err != nil {
		return fmt.Errorf("epmd: serve: %w", err)
	}
	k.server = NewServer(k.Log)
	for _, l := range ls {
		k.serving.Go(func() { k.server.Serve(reserve.Listener(l, k.Log)) })
	}
	return nil
}

// listen listens at the addresses of ERL_EPMD_ADDRESS and the loopback or, if that is not set,
// at all addresses, like the daemon.
func listen(port uint16) (ls []net.Listener, err error) {
	hosts, optional, err := hosts(os.Getenv("ERL_EPMD_ADDRESS"))
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		l, err := net.Listen("tcp", joinPort(host, port))
		switch {
		case err == nil:
			ls = append(ls, l)
		case host != optional:
			for _, l := range ls {
				l.Close()
			}
			return nil, err
		}
	}
	return ls, nil
}

// hosts returns the addresses at which to listen. The IPv6 loopback is optional unless env
// contains it, because the system may not have it.
func hosts(env string) (hosts []string, optional string, err error) {
	for _, host := range strings.FieldsFunc(env, func(r rune) bool { return r == ',' || r == ' ' }) {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, "", fmt.Errorf("ERL_EPMD_ADDRESS is %q, must be IP addresses separated by commas", env)
		}
		hosts = append(hosts, ip.String())
	}
	if len(hosts) == 0 {
		return []string{""}, "", nil
	}
	if !slices.Contains(hosts, loopback) {
		hosts = append(hosts, loopback)
	}
	if !slices.Contains(hosts, loopback6) {
		hosts, optional = append(hosts, loopback6), loopback6
	}
	return hosts, optional, nil
}

// stopServing ends our own EPMD, and logs the other nodes that are registered with it.
func (k *Keeper) stopServing() {
	if k.server == nil {
		return
	}
	var others []string
	for _, n := range k.server.table.names() {
		if n.Name != k.Node.Name {
			others = append(others, n.Name)
		}
	}
	if len(others) > 0 {
		k.Log.Warn("epmd: the node's own EPMD ends, but other nodes are registered with it; "+
			"those of OTP 23 must be restarted to be found", "nodes", others)
	}
	k.server.Close()
	k.serving.Wait()
	k.server = nil
}
