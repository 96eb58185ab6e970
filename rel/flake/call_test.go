package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestErlang(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	n.erl(nil, "ping", "get", "bases", "bad_bases", "many", "texts", "fields", "info", "held_up", "ordered", "traced",
		"bad_calls", "unknown", "cast", "message", "terms",
		"concurrent", "pipelined", "send_request", "alias", "monitors", "noproc")
	n.signal(syscall.SIGTERM)
	n.wait() // until all of its log is written
	if got := strings.Count(n.output(), "msg=connected"); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// The original's functions return the same here as in the original.
func TestOriginal(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	n.erl(nil, "servers", "functions", "refusals", "terminate", "spawns")
	if got := n.output(); !regexp.MustCompile(`(?m)^generating ids: [0-9]+\.[0-9]{3} s$`).MatchString(got) {
		t.Error("timed_generate printed nothing")
	}
}

// A node without a name gets one from the node that it connects to: the name that it had before, if that is
// free. The test uses short names, so that it does not depend on the host's name.
func TestDynamicName(t *testing.T) {
	t.Parallel()
	n := startNode(t, "", "-name", "flake@localhost")
	const check = "dynamic=flake@localhost"
	var given []string
	for range 2 {
		p := spawnErlTo(t, n.name, n.port, []string{"-sname", "undefined"}, check)
		wantChecks(t, p, check)
		given = append(given, p.await("NAMED "))
		await(t, "the caller is gone", func() bool { return strings.Count(n.output(), "msg=disconnected") == len(given) })
	}
	if given[0] != given[1] {
		t.Errorf("the names given are %v, want the same name twice", given)
	}
}

func TestElixir(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	p := spawn(t, n.port, "elixir", "--name", "caller@127.0.0.1", "--cookie", cookie,
		"--erl", "-start_epmd false", "testdata/caller.exs", nodeName)
	wantChecks(t, p, "elixir")
}

// A call that one node forwards for another is answered, although flake must first connect to the
// caller's node.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	proxy := spawnErl(t, n.port, []string{"-name", "proxy@127.0.0.1"}, "proxy")
	proxy.await("READY")
	n.erl(nil, "proxied=proxy@127.0.0.1")
	wantChecks(t, proxy, "proxy")
}

func TestWrongCookie(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	const attempts = 3
	for range attempts {
		n.erl([]string{"-name", "caller@127.0.0.1", "-setcookie", "wrong"}, "refused")
	}
	n.erl(nil, "get")
	await(t, "all attempts are logged", func() bool { return strings.Count(n.output(), "wrong cookie") >= attempts })
	if got := strings.Count(n.output(), "wrong cookie"); got != attempts {
		t.Errorf("the wrong cookie was logged %d times, want %d, once per attempt", got, attempts)
	}
}
