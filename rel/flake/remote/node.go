// Package remote connects to a running node, over the Erlang distribution or HTTP, and gets a
// report of its state.
//
// Start at [Choice].
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/escape"
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

// reportOfNode gets the report over the Erlang distribution.
func reportOfNode(ctx context.Context, cfg config.Config) (*idhttp.Report, error) {
	node, err := NewNode(cfg.Node)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	r := &idhttp.Report{Node: cfg.Node.Name, Ready: true}
	names := []string{"flake"}
	for _, g := range cfg.Generators {
		names = append(names, g.Name)
	}
	var notReady error
	for _, name := range names {
		g := idhttp.GeneratorReport{Name: name}
		if err := describe(ctx, node, &g, r); err != nil {
			return nil, err
		}
		if r.Generators = append(r.Generators, g); !g.Ready && r.Ready {
			r.Ready, notReady = false, escape.Err(fmt.Errorf("not ready: generator %s: %s", name, g.Reason))
		}
	}
	return r, notReady
}

// describe reads a generator's properties and gets an id to see whether the generator can make one.
func describe(ctx context.Context, node *client.Node, g *idhttp.GeneratorReport, r *idhttp.Report) error {
	err := ReadInfo(ctx, node, g.Name, g, r)
	if errors.Is(err, client.ErrNoProcess) {
		g.Reason = "noproc"
		return nil
	}
	if err != nil {
		return err
	}
	answer, err := node.Call(ctx, etf.Atom(g.Name), etf.Atom("get"))
	g.Reason = "no id"
	if t, ok := answer.(etf.Tuple); ok && len(t) == 2 {
		if reason, ok := t[1].(etf.Atom); ok {
			g.Reason = string(reason)
		} else if t[0] == etf.Atom("ok") {
			g.Ready, g.Reason = true, ""
		}
	}
	return err
}

// ReadInfo reads a generator's properties, which have the same names as the report's fields.
func ReadInfo(ctx context.Context, node *client.Node, generator string, into ...any) error {
	info, err := node.Call(ctx, etf.Atom(generator), etf.Atom("info"))
	if err != nil {
		return err
	}
	list, ok := info.(etf.List)
	properties := make(map[etf.Atom]etf.Term)
	for _, p := range list {
		if p, ok := p.(etf.Tuple); ok && len(p) == 2 {
			if name, ok := p[0].(etf.Atom); ok {
				properties[name] = p[1]
			}
		}
	}
	text, err := json.Marshal(properties)
	for _, v := range into {
		err = cmp.Or(err, json.Unmarshal(text, v))
	}
	if !ok || err != nil {
		return fmt.Errorf("%s does not describe itself: it is boundary/flake, or another program", generator)
	}
	return nil
}
