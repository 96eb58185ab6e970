package node

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/ergo-services/ergo/lib"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/reserve"
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

// Where descriptors are few nobody is dialled.
func TestNoRouteFewFiles(t *testing.T) {
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	few := usual
	few.Cur = reserve.Kept
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual)
	r := &registrar{Keeper: &epmd.Keeper{Mode: epmd.Off}, node: &Node{}}
	if _, err := r.Resolve("nobody@127.0.0.1"); !errors.Is(err, reserve.ErrFew) {
		t.Error(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	c, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := (dialler{}).Start(c.RemoteAddr(), c.(*net.TCPConn), false, ""); !errors.Is(err, reserve.ErrFew) {
		t.Error(err)
	}
}
