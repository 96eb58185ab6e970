package node

import (
	"errors"
	"testing"

	"github.com/ergo-services/ergo/lib"

	"github.com/flake-go/flake/node/epmd"
)

// Ergo asks its other sources of routes after an error that says there is none.
func TestNoRoute(t *testing.T) {
	r := &registrar{Keeper: &epmd.Keeper{Mode: epmd.Off}, node: &Node{}}
	if _, err := r.Resolve("nobody@127.0.0.1"); !errors.Is(err, lib.ErrNoRoute) {
		t.Error(err)
	}
	if _, err := r.ResolveProxy("nobody@127.0.0.1"); err != lib.ErrProxyNoRoute {
		t.Error(err)
	}
}
