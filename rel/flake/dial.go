package main

import (
	"context"
	"log/slog"
	"net"
	"strings"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
)

// dialNode connects to the node that the configuration is about: by its address if
// that is fixed, else by way of EPMD.
func dialNode(ctx context.Context, cfg config.Node) (*client.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	dialer := client.Dialer{Cookie: cfg.Cookie}
	certificates, err := openCerts(cfg, slog.Default())
	if err != nil {
		return nil, err
	}
	if certificates != nil {
		dialer.TLS = certificates.Config()
	}
	_, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port == "0" {
		return dialer.Dial(ctx, cfg.Name)
	}
	_, host, _ := strings.Cut(cfg.Name, "@")
	return dialer.DialAddr(ctx, net.JoinHostPort(host, port), cfg.Name)
}
