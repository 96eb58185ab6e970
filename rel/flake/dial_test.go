package main

import (
	"net"
	"testing"

	"github.com/flake-go/flake/config"
)

// The configured node is found at its port without EPMD, and by an EPMD of its own.
func TestDialerOf(t *testing.T) {
	port := freePort(t)
	startDaemon(t, port)
	for name, set := range map[string]func(*config.Node){
		"without EPMD": func(c *config.Node) {
			c.EPMD, c.Listen = "off", net.JoinHostPort("127.0.0.1", freePort(t))
		},
		"with an EPMD of its own": func(c *config.Node) { c.EPMD = "127.0.0.1:" + port },
	} {
		t.Run(name, func(t *testing.T) {
			var own config.Node
			t.Setenv("PATH", "") // where no epmd is found
			s, _ := startHere(t, func(c *config.Config) {
				set(&c.Node)
				own = c.Node
			})
			defer s.stop()
			dialer, err := dialerOf(own)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := dialer.Dial(t.Context(), own.Name)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}
