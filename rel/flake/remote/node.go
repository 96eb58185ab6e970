// Package remote connects to a running node, over the Erlang distribution or HTTP, and has it
// report how it is.
//
// Start at [Choice].
package remote

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/credentials"
)

// CallTime bounds a call to a running node, connecting included.
const CallTime = 10 * time.Second

// Dialer returns how to connect to the configured node: at its address if that is
// fixed, else through the EPMD that it has.
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
	}
	if _, _, err := net.SplitHostPort(cfg.EPMD); err == nil {
		dialer.EPMD = cfg.EPMD
	}
	return dialer, nil
}

// SayDigest says who gets a digest of the cookie that TLS would keep from strangers. Only this
// machine answers for a node on the loopback.
func SayDigest(w io.Writer, cfg config.Node) {
	_, host, _ := strings.Cut(cfg.Name, "@")
	if !cfg.TLS.On && !config.IsLoopback(host) {
		fmt.Fprintf(w, "flake: node.tls is not set: whoever answers at %s gets a digest of the cookie\n", host)
	}
}

// NewNode returns the way to the configured node.
func NewNode(cfg config.Node) (*client.Node, error) {
	dialer, err := Dialer(cfg)
	if err != nil {
		return nil, err
	}
	return client.NewNode(cfg.Name, dialer), nil
}

// BadRPC takes the reason out of {badrpc, {'EXIT', {Reason, Stack}}}.
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
