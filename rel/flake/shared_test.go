package main

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/node/handshake"
)

// In the tests in this file, callers share an address with hostile peers.

// sharedNode is the command at an address that is not a loopback address, if the
// machine has one.
type sharedNode struct {
	*flakeNode
	host string
}

const sharedCookie = "S3CRET"

func startShared(t *testing.T) *sharedNode {
	t.Helper()
	host := ownAddress(t)
	n := &sharedNode{startNode(t, "", "-name", "flake@"+host, "-setcookie", sharedCookie), host}
	_, port, _ := net.SplitHostPort(n.addr)
	n.addr = net.JoinHostPort(host, port)
	return n
}

// shakeHands shakes hands as a node with this name.
func (n *sharedNode) shakeHands(c net.Conn, name, cookie string) error {
	_, err := handshake.Start(c, n.name, handshake.Options{Node: name + "@" + n.host, Creation: 1, Cookie: cookie})
	return err
}

// come dials as this many callers, and starts their handshakes. await waits until these are complete.
func (n *sharedNode) come(callers int) (await func()) {
	var in sync.WaitGroup
	for i := range callers {
		begun, c := time.Now(), dial(n.t, n.addr)
		in.Go(func() {
			err := n.shakeHands(c, fmt.Sprintf("caller%d", i), sharedCookie)
			for err != nil && tooSlow(begun) {
				begun = time.Now()
				if c, err = net.Dial("tcp", n.addr); err == nil {
					n.t.Cleanup(func() { c.Close() })
					err = n.shakeHands(c, fmt.Sprintf("caller%d", i), sharedCookie)
				}
			}
			if err != nil {
				n.t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	return in.Wait
}

// offend tries wrong cookies, so that the node delays callers from this address.
func (n *sharedNode) offend() {
	var all sync.WaitGroup
	for range 8 {
		c := dial(n.t, n.addr)
		all.Go(func() {
			if n.shakeHands(c, "guess", "guess") == nil {
				n.t.Error("a wrong cookie was accepted")
			}
		})
	}
	all.Wait()
}

// erlComes is like come, for one real Erlang node.
func (n *sharedNode) erlComes() (await func()) {
	n.t.Helper()
	checks := []string{"ping", "get"}
	caller := spawnErlTo(n.t, n.name, n.port, []string{"-name", "caller@" + n.host, "-setcookie", sharedCookie}, checks...)
	return func() { wantChecks(n.t, caller, checks...) }
}

// ownAddress returns the machine's own address, or a loopback address if the machine has no other.
// The limits on handshakes in progress apply to both.
func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && ip.IsGlobalUnicast() {
			return ip.String()
		}
	}
	return "127.0.0.1"
}

// Many callers that connect from one address at the same time are all admitted, although another peer at that
// address opens thousands of silent connections.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	n := startShared(t)
	for range 3000 {
		dial(t, n.addr)
	}
	n.come(200)()
	n.erlComes()()
}

// A peer that tries wrong cookies and starts more handshakes than allowed does not keep out callers at the
// same address.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	n := startShared(t)
	n.offend()
	await := n.come(8)
	for i := range 1200 {
		dial(t, n.addr)
		dial(t, n.addr).Write(nameMessage(fmt.Sprintf("half%d@%s", i, n.host)))
	}
	await()
	n.erlComes()()
}

// Concurrent handshakes, slightly fewer than the limit, do not end each other, although the node
// delays this address for wrong cookies, and some callers are silent.
func TestStorm(t *testing.T) {
	t.Parallel()
	const callers, silent, most = 1020, 20, 3 * 1020
	n := startShared(t)
	n.offend()
	for range silent {
		dial(t, n.addr)
	}
	await := n.erlComes()
	var in sync.WaitGroup
	var tries atomic.Int64
	for i := range callers {
		in.Go(func() {
			for again := true; again && tries.Add(1) <= most; {
				c, err := net.Dial("tcp", n.addr)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { c.Close() })
				again = n.shakeHands(c, fmt.Sprintf("caller%d", i), sharedCookie) != nil
			}
		})
	}
	in.Wait()
	await()
	if tries.Load() > most {
		t.Errorf("%d callers were not admitted in %d tries", callers, most)
	}
}
