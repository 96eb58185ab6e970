// Package remote connects to a running node, over the Erlang distribution or HTTP, and gets a
// report of its state.
//
// Start at [Choice].
package remote

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/credentials"
)

// CallTime limits a call to a running node, including the time to connect.
const CallTime = 10 * time.Second

// Dialer returns a dialer for the configured node: for its address if the port is fixed,
// otherwise through its EPMD.
func Dialer(cfg config.Node) (client.Dialer, error) {
	dialer := client.Dialer{Cookie: cfg.Cookie}
	certificates, err := credentials.NodeCerts(cfg, slog.Default())
	if err != nil {
		return dialer, err
	}
	if certificates != nil {
		dialer.TLS = certificates.Config()
	}
	if port := cfg.FixedPort(); port != "" {
		_, host, _ := strings.Cut(cfg.Name, "@")
		dialer.Addr = net.JoinHostPort(host, port)
	} else if cfg.EPMD == "off" {
		return dialer, cli.UsageError(errors.New(
			`node.epmd is "off", so node.listen must have the node's port; or ask over HTTP`))
	}
	if _, _, err := net.SplitHostPort(cfg.EPMD); err == nil {
		dialer.EPMD = cfg.EPMD
	}
	return dialer, nil
}

// SayDigest warns that, without TLS, any host that answers at the name gets a digest of the
// cookie. A node on loopback needs no warning: only this machine can answer.
func SayDigest(w io.Writer, cfg config.Node) {
	_, name, _ := strings.Cut(cfg.Name, "@")
	if !cfg.TLS.On && !host.IsLoopback(name) {
		fmt.Fprintf(w, "flake: node.tls is not set: any program that answers at %s gets a digest of the cookie\n", name)
	}
}

// NewNode returns a client of the configured node.
func NewNode(cfg config.Node) (*client.Node, error) {
	dialer, err := Dialer(cfg)
	if err != nil {
		return nil, err
	}
	return client.NewNode(cfg.Name, dialer), nil
}

// BadRPC extracts Reason from {badrpc, {'EXIT', {Reason, Stack}}}.
func BadRPC(result etf.Term) (reason etf.Term, failed bool) {
	for _, word := range []etf.Atom{"badrpc", "EXIT"} {
		t, ok := result.(etf.Tuple)
		if !ok || len(t) != 2 || t[0] != word {
			return result, failed
		}
		result, failed = t[1], true
	}
	if t, ok := result.(etf.Tuple); ok && len(t) == 2 {
		return t[0], true
	}
	return result, true
}
