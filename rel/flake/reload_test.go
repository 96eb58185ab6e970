package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// reloaded is the command with a configuration that the test rewrites.
type reloaded struct {
	*flakeNode
	path string
	head string // of the configuration, with the keys that stay
	logs int    // bytes of its output that next has searched
}

// hangUp writes the configuration, sends SIGHUP, and waits for the log line that contains text, as
// next does.
func (r *reloaded) hangUp(node, text string) string {
	r.t.Helper()
	writeFile(r.t, r.path, node+r.head)
	r.signal(syscall.SIGHUP)
	return r.next(text)
}

// next waits for the next log line that contains text, and returns the line from text on.
func (r *reloaded) next(text string) (found string) {
	r.t.Helper()
	await(r.t, text, func() bool {
		out := r.output()
		i := strings.Index(out[r.logs:], text)
		if i < 0 {
			return false
		}
		i += r.logs
		found, _, _ = strings.Cut(out[i:], "\n")
		r.logs = i + len(found)
		return true
	})
	return found
}

const tokens = "0123456789abcdef"

// startReloaded starts the command with these keys for [node], and HTTP with a token.
func startReloaded(t *testing.T, node string) (r *reloaded, token string) {
	t.Helper()
	dir := t.TempDir()
	token = filepath.Join(dir, "token")
	writeFile(t, token, tokens)
	r = &reloaded{path: configFile(t, ""), head: "\n[http]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"" + token + "\"\n"}
	text := readFile(t, r.path)
	_, flake, _ := strings.Cut(text, "[flake]")
	r.head += "[flake]" + flake
	writeFile(t, r.path, node+r.head)
	r.flakeNode = startNode(t, "", "-config", r.path)
	return r, token
}

// steady is a check of 100 processes that call until the node stops. Without pauses, they would take all processors.
const steady = "stop=100"

// The cookie and the token of a node change while callers with the old cookie and with the new one take
// ids. An invalid configuration changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	r, token := startReloaded(t, "[node]\ncookie = \"old\"\n")
	url := r.await("  HTTP ")
	callers := 0
	wantCookies := func(want map[string]string) {
		t.Helper()
		for cookie, check := range want {
			callers++
			r.erl([]string{"-name", fmt.Sprintf("caller%d@127.0.0.1", callers), "-setcookie", cookie}, check)
		}
	}
	wantToken := func(token string, want int) {
		t.Helper()
		if got, _ := fetch(t, http.DefaultClient, url+"v1/ids", token); got != want {
			t.Errorf("token %s: %d, want %d", token, got, want)
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	stays := spawnErl(t, r.port, []string{"-name", "stays@127.0.0.1", "-setcookie", "old"}, steady)
	stays.await("READY")

	const both = "[node]\ncookie = \"new\"\nprevious_cookie = \"old\"\n"
	line := r.hangUp(both, "the configuration was reloaded")
	if want := `keys="node.cookie, node.previous_cookie"`; !strings.Contains(line, want) {
		t.Errorf("%s, want %s", line, want)
	}
	wantCookies(map[string]string{"old": "get", "new": "get", "neither": "refused"})
	if line := r.next("a node connected with the previous cookie"); !strings.Contains(line, "peer=caller") {
		t.Error(line)
	}

	writeFile(t, token, "fedcba9876543210")
	line = r.hangUp("[node]\ncookie = \"\"\nnet_ticktime = 1\n", "the configuration could not be reloaded")
	if want := `node.net_ticktime = 1`; !strings.Contains(line, want) {
		t.Errorf("%s, want %s", line, want)
	}
	wantToken(tokens, 200)
	writeFile(t, token, "short")
	r.hangUp(both, "the configuration could not be reloaded")
	wantToken(tokens, 200)
	writeFile(t, token, "fedcba9876543210")

	const last = "[node]\ncookie = \"new\"\nname = \"other@127.0.0.1\"\nmax_connections = 1000\n"
	line = r.hangUp(last, "the configuration was reloaded")
	for _, want := range []string{"node.previous_cookie", "node.max_connections", "http.token_file"} {
		if !strings.Contains(line, want) {
			t.Errorf("%s, want %s", line, want)
		}
	}
	if line := r.next("changes to these keys need a restart"); !strings.Contains(line, "keys=node.name") {
		t.Error(line)
	}
	wantToken(tokens, 401)
	wantToken("fedcba9876543210", 200)
	wantCookies(map[string]string{"old": "refused", "new": "get"})
	for _, secret := range []string{tokens, "fedcba9876543210", `"old"`, `"new"`} {
		if strings.Contains(r.output(), secret) {
			t.Errorf("the output contains the secret %s", secret)
		}
	}
	r.signal(syscall.SIGTERM)
	wantChecks(t, stays, steady)
	r.wait()
}

// Changed secrets are read without a signal, even behind a link as in Kubernetes. An invalid one is logged.
func TestSecretsAreWatched(t *testing.T) {
	t.Parallel()
	cookie := filepath.Join(t.TempDir(), "cookie")
	linkTo := func(secret string) { // as Kubernetes updates a volume
		t.Helper()
		to := filepath.Join(t.TempDir(), "cookie")
		writeFile(t, to, secret)
		if err := errors.Join(os.Symlink(to, cookie+".new"), os.Rename(cookie+".new", cookie)); err != nil {
			t.Fatal(err)
		}
	}
	linkTo("old")
	r, token := startReloaded(t, "[node]\ncookie_file = '"+cookie+"'\n")
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() { linkTo("new") }, `the configuration was reloaded" keys=node.cookie`},
		{func() { writeFile(t, token, "short") }, "http.token_file"},
		{func() { writeFile(t, token, "fedcba9876543210") }, `the configuration was reloaded" keys=http.token_file`},
		{func() { likeBefore(t, token, "fedcba98765432ff") }, `the configuration was reloaded" keys=http.token_file`},
	} {
		step.change()
		r.next(step.want)
	}
	r.erl([]string{"-name", "caller@127.0.0.1", "-setcookie", "new"}, "get")
}

// likeBefore replaces a file by one with the same size and time.
func likeBefore(t *testing.T, path, text string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+".new", text)
	err = errors.Join(os.Chtimes(path+".new", info.ModTime(), info.ModTime()), os.Rename(path+".new", path))
	if err != nil {
		t.Fatal(err)
	}
}

// On a terminal, SIGHUP ends the node, as closing the terminal does.
func TestHangupOnTerminal(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	// script gives the command its own terminal, on which the node has no prompt.
	shell := fmt.Sprintf("echo $$ > %s; PATH= exec %s -noinput -config %s", pid, command, configFile(t, ""))
	p := spawn(t, freePort(t), "script", "-qec", shell, "/dev/null")
	p.await("  EPMD ")
	text := readFile(t, pid)
	var id int
	if _, err := fmt.Sscan(text, &id); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(id, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if status := p.wait(); status != 0 || !strings.Contains(p.output(), "stopping") {
		t.Errorf("exit status %d", status)
	}
}
