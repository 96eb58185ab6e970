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

// provide starts an EPMD where nobody listens: OTP's daemon if it is installed, as erl does,
// because it outlives us; else our own.
func (k *Keeper) provide(ctx context.Context) error {
	if path, err := exec.LookPath(k.program); err == nil {
		err := k.startDaemon(ctx, path)
		if err == nil || ctx.Err() != nil {
			return err
		}
		k.Log.Warn("epmd: the daemon does not start, so one of our own is served", "file", path, "err", err)
	}
	err := k.serve()
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil // another node was quicker: its EPMD is the one to use
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

// serve starts our own EPMD at all its addresses, or at none.
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

// listen opens the port at the addresses of ERL_EPMD_ADDRESS and on the loopback; if that is
// not set, at all addresses, as the daemon does.
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

// hosts returns the addresses to listen at. The IPv6 loopback is optional unless it is asked
// for: the system may have none.
func hosts(env string) (hosts []string, optional string, err error) {
	for _, host := range strings.FieldsFunc(env, func(r rune) bool { return r == ',' || r == ' ' }) {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, "", fmt.Errorf("ERL_EPMD_ADDRESS is %q, addresses are allowed, separated by commas", env)
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

// stopServing ends our own EPMD, and reports who else loses it.
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
		k.Log.Warn("epmd: the EPMD of its own ends, and other nodes are registered with it; "+
			"those of OTP 23 have to be started again to be found", "nodes", others)
	}
	k.server.Close()
	k.serving.Wait()
	k.server = nil
}
