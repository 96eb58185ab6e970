package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/host"
	"github.com/flake-go/flake/node/socket"
	"github.com/flake-go/flake/rel/flake/cli"
)

// httpEnd limits how long requests in progress may take when the node stops.
const httpEnd = 5 * time.Second

// httpDoor is the HTTP door with its listeners.
type httpDoor struct {
	*idhttp.Door // nil until it serves
	listener     net.Listener
	scheme       string
	metrics      net.Listener // or nil
}

// openDoor listens for HTTP if the configuration says so; otherwise it returns nil.
func openDoor(cfg config.HTTP, log *slog.Logger) (*httpDoor, error) {
	if cfg.Listen == "" {
		return nil, nil
	}
	scheme := "http://"
	if cfg.TLS.On {
		scheme = "https://"
	}
	l, err := net.Listen(node.Network(cfg.Listen), cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	if address, _, _ := net.SplitHostPort(cfg.Listen); !host.IsLoopback(address) && !cfg.TLS.On {
		log.Warn("HTTP without TLS: anyone on the network can read requests, answers and the token")
	}
	d := &httpDoor{listener: socket.Listener(l, log), scheme: scheme}
	if cfg.Metrics != "" {
		if l, err = net.Listen(node.Network(cfg.Metrics), cfg.Metrics); err != nil {
			d.stop()
			return nil, fmt.Errorf("http.metrics: %w", err)
		}
		d.metrics = socket.Listener(l, log)
	}
	return d, nil
}

// surroundings returns what HTTP reports about the node. secured is nil, or returns the node's TLS settings.
func surroundings(n *node.Node, secured func() *tls.Config) idhttp.Node {
	return idhttp.Node{
		Name: n.Name(), Address: n.Addr().String(), Version: cli.Version, Commit: cli.Commit,
		TLS: secured, Traffic: n.Traffic, Peers: n.Peers,
	}
}

func (d *httpDoor) serve(o idhttp.Options) {
	if d == nil {
		return
	}
	d.Door = idhttp.New(o)
	d.Serve(d.listener, d.metrics)
}

// addresses returns the URLs for ids and for metrics, each "" if there is no listener for it.
func (d *httpDoor) addresses() (ids, metrics string) {
	if d == nil {
		return "", ""
	}
	if d.metrics != nil {
		metrics = d.scheme + d.metrics.Addr().String() + "/metrics"
	}
	return d.scheme + d.listener.Addr().String() + "/", metrics
}

// stop closes the door, whether or not it serves yet.
func (d *httpDoor) stop() {
	switch {
	case d == nil:
	case d.Door != nil:
		ctx, cancel := context.WithTimeout(context.Background(), httpEnd)
		defer cancel()
		d.Stop(ctx)
	default:
		d.listener.Close()
		if d.metrics != nil {
			d.metrics.Close()
		}
	}
}
