package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	server   *idhttp.Server // once it serves
	certs    *certs.Source  // or nil
	listener net.Listener
	url      string
}

// openDoor listens if the configuration says so, else it returns nil. Without certificates
// it is HTTP without TLS.
func openDoor(cfg config.HTTP, certificates *certs.Source, log *slog.Logger) (*door, error) {
	if cfg.Listen == "" {
		return nil, nil
	}
	scheme := "http"
	if certificates != nil {
		scheme = "https"
	}
	l, err := net.Listen(node.Network(cfg.Listen), cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	if host, _, _ := net.SplitHostPort(cfg.Listen); !config.IsLoopback(host) && !cfg.TLS.On {
		log.Warn("HTTP without TLS: whoever is on the way can read it, and its token")
	}
	return &door{nil, certificates, reserve.Listener(l, log), scheme + "://" + l.Addr().String() + "/"}, nil
}

// openHTTPCerts reads the files of [http.tls]. Without that table, or HTTP, it returns nil.
func openHTTPCerts(cfg config.HTTP, log *slog.Logger) (*certs.Source, error) {
	if !cfg.TLS.On || cfg.Listen == "" {
		return nil, nil
	}
	s, err := certs.Open(certs.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key}, log)
	if err != nil {
		return nil, usageError{fmt.Errorf("http.tls: %w", err)}
	}
	return s, nil
}

// surroundings is what HTTP reports of the node, whose TLS settings are secured or nil.
func surroundings(n *node.Node, secured func() *tls.Config) idhttp.Node {
	return idhttp.Node{
		Name: n.Name(), Address: n.Addr().String(), Version: version, Commit: commit,
		CertificateEnds: certificateEnds(secured),
		Traffic:         func() idhttp.Traffic { return idhttp.Traffic(n.Traffic()) },
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

func (d *door) serve(o idhttp.Options) {
	if d == nil {
		return
	}
	if d.certs != nil {
		o.TLS = d.certs.Config
	}
	d.server = idhttp.New(o)
	d.server.Serve(d.listener)
}

// close closes one that does not serve.
func (d *door) close() {
	if d != nil {
		d.listener.Close()
	}
}

func (d *door) announce(w io.Writer) {
	if d != nil {
		fmt.Fprintf(w, "  HTTP       %s\n", d.url)
	}
}

// renew has requests answered as a says, and the certificates read again.
func (d *door) renew(a idhttp.Access) {
	if d != nil {
		d.server.SetAccess(a)
		if d.server.TLS != nil {
			d.server.TLS()
		}
	}
}

func (d *door) drain() {
	if d != nil {
		d.server.Drain()
	}
}

func (d *door) stop() {
	if d != nil {
		ctx, cancel := context.WithTimeout(context.Background(), httpEnd)
		defer cancel()
		d.server.Stop(ctx)
	}
}

// access is who is answered what, with the token that is in its file now. Without HTTP
// nobody is, and the token is of commands that ask another node.
func access(cfg config.HTTP) (a idhttp.Access, err error) {
	if cfg.Listen == "" {
		return a, nil
	}
	a.AnyHost, a.Pprof = cfg.Open, cfg.Pprof
	a.Token, err = token(cfg.TokenFile)
	return a, err
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
		return "", fmt.Errorf("http.token_file %q: %d characters or more wanted, as of openssl rand -hex 16", path, minToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("http.token_file %q: printable characters of ASCII without spaces wanted", path)
		}
	}
	return token, nil
}
