package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/certs"
	"github.com/flake-go/flake/node/reserve"
)

// httpEnd is how long running requests have left when the node stops.
const httpEnd = 5 * time.Second

// minToken is the shortest accepted token: 64 bits, if random and in base 16.
const minToken = 16

// door is the HTTP door.
type door struct {
	server   *idhttp.Server
	listener net.Listener
	url      string
}

// openDoor listens if the configuration says so, else it returns nil.
func openDoor(cfg config.HTTP, log *slog.Logger, o idhttp.Options) (*door, error) {
	if cfg.Listen == "" {
		return nil, nil
	}
	scheme := "http"
	if cfg.TLS.On {
		source, err := certs.Open(certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}, log)
		if err != nil {
			return nil, usageError{fmt.Errorf("http.tls: %w", err)}
		}
		o.TLS, scheme = source.Config, "https"
	}
	var err error
	if o.Token, err = token(cfg.TokenFile); err != nil {
		return nil, usageError{err}
	}
	o.AnyHost, o.Log = cfg.Open, log
	l, err := net.Listen(node.Network(cfg.Listen), cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	if host, _, _ := net.SplitHostPort(cfg.Listen); !config.IsLoopback(host) && !cfg.TLS.On {
		log.Warn("HTTP without TLS: whoever is on the way can read it, and its token")
	}
	o.Connections = reserve.Share(httpWithin(reserve.Memory()))
	return &door{idhttp.New(o), reserve.Listener(l, log), scheme + "://" + l.Addr().String() + "/"}, nil
}

// surroundings is what HTTP reports of the node, whose TLS settings are secured or nil.
func surroundings(n *node.Node, f *fleet, secured func() *tls.Config) idhttp.Node {
	return idhttp.Node{
		Name: n.Name(), Address: n.Addr().String(), Version: version, Commit: commit(),
		CertificateEnds: certificateEnds(secured),
		Traffic:         func() idhttp.Traffic { return idhttp.Traffic(n.Traffic()) },
		Asked:           f.asked,
		Peers: func() []idhttp.Peer {
			all := n.Peers()
			peers := make([]idhttp.Peer, len(all))
			for i, p := range all {
				peers[i] = idhttp.Peer(p)
			}
			return peers
		},
	}
}

func certificateEnds(secured func() *tls.Config) func() time.Time {
	if secured == nil {
		return nil
	}
	return func() time.Time { return secured().Certificates[0].Leaf.NotAfter }
}

// commit returns the one that the command was built from, or "" if the build does not say.
func commit() (revision string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value + revision
		case s.Key == "vcs.modified" && s.Value == "true":
			revision += "-modified"
		}
	}
	return revision
}

func (d *door) serve() {
	if d != nil {
		d.server.Serve(d.listener)
	}
}

func (d *door) announce(w io.Writer) {
	if d != nil {
		fmt.Fprintf(w, "  HTTP       %s\n", d.url)
	}
}

func (d *door) stop() {
	if d != nil {
		ctx, cancel := context.WithTimeout(context.Background(), httpEnd)
		defer cancel()
		d.server.Stop(ctx)
	}
}

// token reads the token's file; without a file there is no token.
func token(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	token, err := config.Secret(path)
	if err != nil {
		return "", fmt.Errorf("http.token_file %q: %w", path, err)
	}
	if len(token) < minToken {
		return "", fmt.Errorf("http.token_file %q: a first line of %d characters or more wanted, as of openssl rand -hex 16", path, minToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("http.token_file %q: printable characters of ASCII without spaces wanted", path)
		}
	}
	return token, nil
}
