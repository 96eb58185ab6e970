package main

import (
	"log/slog"
	"net"
	"strings"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
)

// dialerOf says how to connect to the node that the configuration is about: by its
// address if that is fixed, else by way of EPMD.
func dialerOf(cfg config.Node) (client.Dialer, error) {
	dialer := client.Dialer{Cookie: cfg.Cookie}
	certificates, err := openCerts(cfg, slog.Default())
	if err != nil {
		return dialer, err
	}
	if certificates != nil {
		dialer.TLS = certificates.Config()
	}
	if _, port, err := net.SplitHostPort(cfg.Listen); err == nil && port != "0" {
		_, host, _ := strings.Cut(cfg.Name, "@")
		dialer.Addr = net.JoinHostPort(host, port)
	}
	return dialer, nil
}
