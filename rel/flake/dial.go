package main

import (
	"context"
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
	_, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port == "0" {
		return client.Dial(ctx, cfg.Name, cfg.Cookie)
	}
	_, host, _ := strings.Cut(cfg.Name, "@")
	return client.DialAddr(ctx, net.JoinHostPort(host, port), cfg.Name, cfg.Cookie)
}
