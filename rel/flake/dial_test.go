package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/rel/flake/remote"
)

// The configured node is found at its port without EPMD, and through its own EPMD.
func TestDialerOf(t *testing.T) {
	port := freePort(t)
	startEPMD(t, port)
	for name, set := range map[string]func(*config.Node){
		"without EPMD": func(c *config.Node) {
			c.EPMD, c.Listen = "off", net.JoinHostPort("127.0.0.1", freePort(t))
		},
		"with an EPMD of its own": func(c *config.Node) { c.EPMD = "127.0.0.1:" + port },
	} {
		t.Run(name, func(t *testing.T) {
			var own config.Node
			t.Setenv("PATH", "") // so that no epmd is found
			s, _ := startHere(t, func(c *config.Config) {
				set(&c.Node)
				own = c.Node
			})
			defer s.Stop()
			dialer, err := remote.Dialer(own)
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

// If the file configures HTTP, get and status reveal no digest of the cookie unless a flag asks for it.
func TestPreferHTTP(t *testing.T) {
	impostor, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Close()
	dialled := make(chan struct{}, 1)
	go func() {
		for {
			c, err := impostor.Accept()
			if err != nil {
				return
			}
			c.Close()
			dialled <- struct{}{}
		}
	}()
	var asked atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "not today", http.StatusServiceUnavailable)
	}))
	defer web.Close()
	file := writeConfig(t, "[node]\nepmd = 'off'\nlisten = %q\n[http]\nlisten = %q", impostor.Addr(), web.Listener.Addr())
	for _, command := range []string{"get", "status"} {
		asked.Store(0)
		if _, _, status := called(t, command, "-config", file); status != exitFailure || asked.Load() == 0 ||
			len(dialled) > 0 {
			t.Errorf("%s: exit status %d, asked %d times over HTTP, dialed %d times", command, status,
				asked.Load(), len(dialled))
		}
		asked.Store(0)
		called(t, command, "-config", file, "-over", "erlang")
		<-dialled
		if asked.Load() > 0 {
			t.Errorf("%s -over erlang: asked %d times over HTTP", command, asked.Load())
		}
	}
}
