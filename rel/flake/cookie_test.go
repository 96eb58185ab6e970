package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The cookie can be set by a flag, the environment or Erlang's file, in this order of precedence. It is never shown.
// Nothing interprets its characters.
func TestCookieSources(t *testing.T) {
	const secret = `S3CRET#'"\{$%`
	for _, tt := range []struct {
		from           string
		env, home, xdg string
		flags          []string
	}{
		{from: "-setcookie", env: "wrong", home: "wrong", flags: []string{"-setcookie", secret}},
		{from: "FLAKE_COOKIE", env: secret, home: "wrong"},
		{from: ".erlang.cookie", home: secret},
		{from: filepath.Join("erlang", ".erlang.cookie"), xdg: secret},
	} {
		t.Run(tt.from, func(t *testing.T) {
			t.Parallel()
			home, xdg := t.TempDir(), t.TempDir()
			for dir, cookie := range map[string]string{home: tt.home, filepath.Join(xdg, "erlang"): tt.xdg} {
				if cookie == "" {
					continue
				}
				cookieFile := filepath.Join(dir, ".erlang.cookie")
				err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(cookieFile, []byte(cookie+"\n"), 0o400))
				if err != nil {
					t.Fatal(err)
				}
			}
			command := script(t, "FLAKE_COOKIE=%s HOME=%s XDG_CONFIG_HOME=%s exec %s \"$@\"",
				quoted(tt.env), quoted(home), quoted(xdg), quoted(command))
			n := startCommand(t, command, "", "", tt.flags...)
			n.erl([]string{"-name", "caller@127.0.0.1", "-setcookie", secret}, "get")
			n.erl([]string{"-name", "caller@127.0.0.1", "-setcookie", "wrong"}, "refused")
			get := spawn(t, n.port, command, append([]string{"get"}, tt.flags...)...)
			if get.wait() != 0 {
				t.Error("flake get failed")
			}
			if from := n.await("  cookie     from "); !strings.HasSuffix(from, tt.from) {
				t.Errorf("the cookie is from %s, want %s", from, tt.from)
			}
			if strings.Contains(n.output()+get.output(), secret[:6]) {
				t.Error("the output contains the cookie")
			}
		})
	}
}

// quoted quotes text for the shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Erlang's digest covers the cookie in Latin-1.
func TestCookieOfLatin1(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8") // otherwise erl does not read its flags as UTF-8
	n := startNode(t, "", "-setcookie", "café")
	n.erl([]string{"-name", "caller@127.0.0.1", "-setcookie", "café"}, "get")
	n.erl([]string{"-name", "caller@127.0.0.1", "-setcookie", "cafÃ©"}, "refused")
	if get := spawn(t, n.port, command, "get", "-setcookie", "café"); get.wait() != 0 {
		t.Error("flake get failed")
	}
}

// A cookie file that others can read is refused, as in Erlang.
func TestOpenCookieFile(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	cookieFile := filepath.Join(os.Getenv("HOME"), ".erlang.cookie")
	writeFile(t, cookieFile, "S3CRET\n")
	if err := os.Chmod(cookieFile, 0o644); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, freePort(t), command, "-noinput", "-config", configFile(t, ""))
	want := "flake: " + cookieFile + ": node.cookie: the file's mode is 0644: other users must not have access (chmod " +
		"400), or set a cookie elsewhere\n"
	if status := p.wait(); status != exitUsage || p.output() != want {
		t.Errorf("exit status %d\ngot  %swant %s", status, p.output(), want)
	}
}
