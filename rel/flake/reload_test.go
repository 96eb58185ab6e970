package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
)

// reloaded is the command with a configuration that the test writes anew.
type reloaded struct {
	*flakeNode
	path string
	head string // of the configuration, with the keys that stay
	logs int    // bytes of its output that have been looked at
}

// hangUp writes the configuration, sends SIGHUP, and returns the line of the log that
// has the text.
func (r *reloaded) hangUp(node, text string) string {
	r.t.Helper()
	rewrite(r.t, r.path, node+r.head)
	r.signal(syscall.SIGHUP)
	return r.next(text)
}

// next waits for the next line of the log that has the text.
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

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const tokens = "0123456789abcdef"

// startReloaded starts the command with these keys for [node], and HTTP with a token.
func startReloaded(t *testing.T, node string) (r *reloaded, token string) {
	t.Helper()
	dir := t.TempDir()
	token = filepath.Join(dir, "token")
	rewrite(t, token, tokens)
	r = &reloaded{path: configFile(t, ""), head: "\n[http]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"" + token + "\"\n"}
	text, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	_, flake, _ := strings.Cut(string(text), "[flake]")
	r.head += "[flake]" + flake
	rewrite(t, r.path, node+r.head)
	r.flakeNode = startNode(t, "", "-config", r.path)
	return r, token
}

// The cookie of a fleet changes while callers with the old one and with the new one take
// ids; and the token with it. What is wrong changes nothing.
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
	stays := spawnErl(t, r.port, []string{"-name", "stays@127.0.0.1", "-setcookie", "old"}, "stop")
	stays.await("READY")

	const both = "[node]\ncookie = \"new\"\nprevious_cookie = \"old\"\n"
	if line, want := r.hangUp(both, "the configuration was reloaded"), `keys="node.cookie, node.previous_cookie"`; !strings.Contains(line, want) {
		t.Errorf("%s, want %s", line, want)
	}
	wantCookies(map[string]string{"old": "get", "new": "get", "neither": "refused"})
	if line := r.next("a node has come with the previous cookie"); !strings.Contains(line, "peer=caller") {
		t.Error(line)
	}

	rewrite(t, token, "fedcba9876543210")
	if line, want := r.hangUp("[node]\ncookie = \"\"\nnet_ticktime = 1\n", "the configuration was not reloaded"), `node.net_ticktime = 1`; !strings.Contains(line, want) {
		t.Errorf("%s, want %s", line, want)
	}
	wantToken(tokens, 200)
	rewrite(t, token, "short")
	r.hangUp(both, "the configuration was not reloaded")
	wantToken(tokens, 200)
	rewrite(t, token, "fedcba9876543210")

	const last = "[node]\ncookie = \"new\"\nname = \"other@127.0.0.1\"\nmax_connections = 1000\n"
	line := r.hangUp(last, "the configuration was reloaded")
	for _, want := range []string{"node.previous_cookie", "node.max_connections", "http.token_file"} {
		if !strings.Contains(line, want) {
			t.Errorf("%s, want %s", line, want)
		}
	}
	if line := r.next("these keys have changed, and need a restart"); !strings.Contains(line, "keys=node.name") {
		t.Error(line)
	}
	wantToken(tokens, 401)
	wantToken("fedcba9876543210", 200)
	wantCookies(map[string]string{"old": "refused", "new": "get"})
	for _, secret := range []string{tokens, "fedcba9876543210", `"old"`, `"new"`} {
		if strings.Contains(r.output(), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	r.signal(syscall.SIGTERM)
	wantChecks(t, stays, "stop")
	r.wait()
}

// The level of the log changes, too.
func TestReloadLogLevel(t *testing.T) {
	level := new(slog.LevelVar)
	s, _ := startHere(t)
	defer s.stop()
	s.level = level
	cfg := s.settings.config
	cfg.Log.Level = slog.LevelDebug
	if err := s.reload(func() (config.Config, error) { return cfg, nil }); err != nil || level.Level() != slog.LevelDebug {
		t.Error(err, level)
	}
}

// What can change has to be right beside what cannot: a file that is right by itself may
// open the node's address to everybody.
func TestSettingsWith(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	rewrite(t, file, tokens)
	open := config.Default()
	open.HTTP = config.HTTP{Listen: "0.0.0.0:8465", TokenFile: file}
	beyond := config.Default()
	beyond.Node.Name, beyond.Node.Cookie = "flake@10.0.0.1", "own"
	numbered := config.Default()
	numbered.HTTP, numbered.Flake.Etcd = open.HTTP, true
	numbered.Etcd.On, numbered.Etcd.Endpoints, numbered.Etcd.User, numbered.Etcd.PasswordFile = true, []string{"a:1"}, "flake", file
	secret := config.Default()
	secret.Node.Cookie, secret.Node.PreviousCookie = "own", "former"
	secret.HTTP = config.HTTP{Listen: "127.0.0.1:8465", TokenFile: file}
	for name, test := range map[string]struct {
		now     config.Config
		change  func(*config.Config)
		changed string
		later   string
		want    string // in the error
	}{
		"nothing":          {open, func(*config.Config) {}, "", "", ""},
		"open at loopback": {open, func(c *config.Config) { c.HTTP = config.HTTP{Listen: "127.0.0.1:8465"} }, "", "", "http.token_file wanted"},
		"published cookie": {beyond, func(c *config.Config) { c.Node = config.Default().Node }, "", "", "this cookie is published"},
		"an empty file":    {secret, func(c *config.Config) { *c = config.Default() }, "", "", "node.cookie: a reload does not go from a cookie"},
		"default cookie":   {secret, func(c *config.Config) { c.Node.Cookie = config.Default().Node.Cookie }, "", "", "node.cookie: a reload does not go from a cookie"},
		"it as the previous one": {secret, func(c *config.Config) { c.Node.PreviousCookie = config.PublishedCookie }, "", "",
			"node.previous_cookie: a reload does not add"},
		"no token":      {secret, func(c *config.Config) { c.HTTP.TokenFile = "" }, "", "", "http.token_file: a reload does not go from a token"},
		"open":          {open, func(c *config.Config) { c.HTTP.TokenFile, c.HTTP.Open = "", true }, "", "", "http.token_file: a reload does not go from a token"},
		"no old cookie": {secret, func(c *config.Config) { c.Node.PreviousCookie = "" }, "node.previous_cookie", "", ""},
		"no file":       {open, func(c *config.Config) { c.HTTP.TokenFile += ".none" }, "", "", "cannot be read"},
		"no certificate": {open, func(c *config.Config) {
			c.Node.TLS = config.TLS{On: true, Cert: "none", Key: "none", Verify: config.VerifyNone}
		}, "", "", "node.tls"},
		"all that can": {open, func(c *config.Config) {
			c.Node.Cookie, c.Node.PreviousCookie, c.Node.MaxConnections, c.Node.MaxConnectionsPerHost, c.Node.DrainTime = "a", "b", 1, 1, 1e9
			c.HTTP.Pprof, c.Etcd.User, c.Etcd.PasswordFile, c.Log.Level = true, "flake", file, slog.LevelWarn
		}, "node.cookie node.previous_cookie node.max_connections node.max_connections_per_host node.drain_time http.pprof etcd.user etcd.password_file log.level", "", ""},
		"another user of etcd": {numbered, func(c *config.Config) { c.Etcd.User = "other" }, "etcd.user", "", ""},
		"no etcd": {numbered, func(c *config.Config) { c.Flake.Etcd, c.Etcd = false, config.Default().Etcd },
			"", "flake.worker_id etcd.endpoints etcd.user etcd.password_file", ""},
		"no HTTP": {open, func(c *config.Config) { c.HTTP.Listen = "" }, "", "http.listen", ""},
		"of each": {open, func(c *config.Config) { c.Node.Cookie, c.Node.NetTicktime, c.Node.Listen = "a", 15e9, "127.0.0.1:1" },
			"node.cookie", "node.listen node.net_ticktime", ""},
	} {
		t.Run(name, func(t *testing.T) {
			now, _, err := readSettings(test.now, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			next := test.now
			test.change(&next)
			got, changed, later, err := now.with(next)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || len(config.Changed(got.config, test.now)) > 0 {
					t.Errorf("%v, want %s", err, test.want)
				}
				return
			}
			if err != nil || !sameKeys(changed, test.changed) || !sameKeys(later, test.later) {
				t.Errorf("changed %q, later %q, %v", changed, later, err)
			}
			if left := config.Changed(got.config, next); !sameKeys(left, test.later) {
				t.Errorf("left are %q, want %q", left, test.later)
			}
			if got.password != now.password {
				t.Error("etcd's password has changed")
			}
			if want := (idhttp.Access{Token: tokens, Pprof: next.HTTP.Pprof}); got.access != want {
				t.Errorf("access %+v, want %+v", got.access, want)
			}
		})
	}
}

func sameKeys(got []string, want string) bool {
	all := strings.Fields(want)
	slices.Sort(got)
	slices.Sort(all)
	return slices.Equal(got, all)
}

// On a terminal SIGHUP ends the node, as its end does.
func TestHangupOnTerminal(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	// script gives the command its own terminal, on which the node has no prompt.
	shell := fmt.Sprintf("echo $$ > %s; PATH= exec %s -noinput -config %s", pid, command, configFile(t, ""))
	p := spawn(t, freePort(t), "script", "-qec", shell, "/dev/null")
	p.await("  EPMD ")
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	var id int
	if _, err := fmt.Sscan(string(text), &id); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(id, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if status := p.wait(); status != 0 || !strings.Contains(p.output(), "stopping") {
		t.Errorf("exit status %d", status)
	}
}
