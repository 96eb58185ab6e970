package node

import (
	"errors"
	"testing"

	"github.com/flake-go/flake/node/epmd"
	"github.com/flake-go/flake/node/handshake"
)

// shows reports whether a node that has a cookie is let in.
func shows(t *testing.T, n *Node, cookie string) bool {
	t.Helper()
	c := dialRaw(t, n)
	defer c.Close()
	_, err := handshake.Start(c, n.Name(), handshake.Options{Node: "a@127.0.0.1", Creation: 77, Cookie: cookie})
	if err != nil && !errors.Is(err, handshake.ErrCookie) {
		t.Fatal(err)
	}
	return err == nil
}

// The cookies change while the node runs, and who is connected stays.
func TestSetCookies(t *testing.T) {
	n := start(t, Options{})
	there := dial(t, n, "there@127.0.0.1")
	there.get()
	for _, step := range []struct {
		current, previous string
		taken             map[string]bool
	}{
		{"new", cookie, map[string]bool{cookie: true, "new": true, "guess": false, "": false}},
		{"new", "", map[string]bool{cookie: false, "new": true, "": false}},
		{"newer", "", map[string]bool{"new": false, "newer": true}},
	} {
		n.SetCookies(step.current, step.previous)
		for cookie, want := range step.taken {
			if got := shows(t, n, cookie); got != want {
				t.Errorf("%s and %q, shown %q: taken %t, want %t", step.current, step.previous, cookie, got, want)
			}
		}
	}
	there.get()
}

// A node that changes its cookie still reaches those that have only one of the two.
func TestConnectWithPreviousCookie(t *testing.T) {
	t.Setenv("ERL_EPMD_PORT", freePort(t))
	t.Setenv("PATH", "") // without epmd
	n := start(t, Options{Cookie: "new", Previous: "old", EPMD: epmd.Auto})
	for has, ok := range map[string]bool{"new": true, "old": true, "other": false} {
		peer := start(t, Options{Name: has + "@127.0.0.1", Cookie: has, EPMD: epmd.Auto})
		if err := n.Connect(peer.Name()); (err == nil) != ok || !ok && !errors.Is(err, handshake.ErrCookie) {
			t.Errorf("a node that has %s: %v", has, err)
		}
	}
	n.SetCookies("new", "")
	late := start(t, Options{Name: "late@127.0.0.1", Cookie: "old", EPMD: epmd.Auto})
	if err := n.Connect(late.Name()); !errors.Is(err, handshake.ErrCookie) {
		t.Error(err)
	}
}

// A wrong cookie costs its host the same while there are two.
func TestPreviousCookieOffends(t *testing.T) {
	n := start(t, Options{Previous: "old"})
	if shows(t, n, "guess") {
		t.Error("let in")
	}
	await(t, "the host is remembered", func() bool {
		n.gate.mu.Lock()
		defer n.gate.mu.Unlock()
		return len(n.gate.offenders) == 1
	})
}

// Limits on connections change while the node runs.
func TestSetConnections(t *testing.T) {
	n := start(t, Options{})
	a := dial(t, n, "a@127.0.0.1")
	a.get()
	n.SetConnections(1, 1)
	dial(t, n, "b@127.0.0.1").ended()
	a.get()
	n.SetConnections(2, 2)
	dial(t, n, "b@127.0.0.1").get()
	a.get()
}
