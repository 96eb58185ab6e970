package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The order of a cookie's sources: flags, the later first, then the file, then the home
// directory, then the published one.
func TestCookieSources(t *testing.T) {
	env := Flag{"FLAKE_COOKIE", cookieKey, "of the environment"}
	flag := Flag{"-setcookie", cookieKey, "of the flag"}
	const file = "[node]\ncookie = 'of the file'"
	for _, tt := range []struct {
		file  string
		home  string
		flags []Flag
		want  string
		from  string // HOME stands for the path of the home cookie
	}{
		{file, "HOME\n", []Flag{env, flag}, "of the flag", "-setcookie"},
		{file, "HOME\n", []Flag{env}, "of the environment", "FLAKE_COOKIE"},
		{file, "HOME\n", nil, "of the file", ""},
		{"", "HOME\n", nil, "HOME", "HOME"},
		{"", "HOME", nil, "HOME", "HOME"},
		{"", "HOME\r\nmore", nil, "HOME", "HOME"},
		{"", "", nil, PublishedCookie, ""},
	} {
		home := setHome(t, tt.home, 0o400)
		c, err := Load(write(t, tt.file), tt.flags...)
		if err != nil || c.Node.Cookie != tt.want || strings.ReplaceAll(c.Node.CookieFrom, home, "HOME") != tt.from {
			t.Errorf("%+v: got %q from %q, %v", tt, c.Node.Cookie, c.Node.CookieFrom, err)
		}
	}
}

// A home cookie usable only by others is refused, unless none is needed.
func TestBadHomeCookie(t *testing.T) {
	for _, tt := range []struct {
		cookie string
		mode   os.FileMode
		want   string
	}{
		{"SECRET\n", 0o440, "HOME: node.cookie: the file's mode is 0440: no access for others wanted (chmod 400), or a cookie set elsewhere"},
		{"SECRET\n", 0o604, "HOME: node.cookie: the file's mode is 0604: no access for others wanted (chmod 400), or a cookie set elsewhere"},
		{"\nSECRET", 0o600, "HOME: node.cookie = (hidden): 1 to 255 printable characters of Latin-1 wanted"},
		{"SÉCRET\n", 0o600, "HOME: node.cookie = (hidden): characters of ASCII wanted, as Erlang does in this file"},
		{"SECRET\x00\n", 0o600, "HOME: node.cookie = (hidden): 1 to 255 printable characters of Latin-1 wanted"},
		{strings.Repeat("SECRET", 1000), 0o600, "HOME: node.cookie: cannot be read: not a short regular file"},
		{"flake\n", 0o600, `HOME: node.cookie = "flake": this cookie is published: set your own, as node.name flake@10.0.0.1 can be reached from other hosts`},
	} {
		home := setHome(t, tt.cookie, tt.mode)
		file := write(t, "[node]\nname = 'flake@10.0.0.1'")
		_, err := Load(file)
		if err == nil {
			t.Errorf("%q: no error", tt.cookie)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), home, "HOME"); got != tt.want {
			t.Errorf("%q:\ngot  %s\nwant %s", tt.cookie, got, tt.want)
		}
		if _, err := Load(file, Flag{"-setcookie", cookieKey, "own"}); err != nil {
			t.Errorf("%q, and not needed: %v", tt.cookie, err)
		}
	}
}

// Erlang makes a digest of a cookie's characters as bytes, so there are none beyond ÿ.
func TestCookieCharacters(t *testing.T) {
	for cookie, ok := range map[string]bool{"café": true, "ÿ": true, "Ā": false, "日本": false} {
		if _, err := Load("", Flag{"-setcookie", cookieKey, cookie}); (err == nil) != ok {
			t.Errorf("%s: %v", cookie, err)
		}
	}
}

// setHome makes a home directory with a cookie, unless that is empty, and returns its path.
func setHome(t *testing.T, cookie string, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	path := filepath.Join(dir, HomeCookieFile)
	if cookie != "" {
		if err := os.WriteFile(path, []byte(cookie), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// A secret is read only from a file accessible to its owner alone.
func TestSecret(t *testing.T) {
	for _, tt := range []struct {
		content, secret, fault string
		mode                   os.FileMode
	}{
		{"token\nmore", "token", "", 0o600},
		{"token\r\n", "token", "", 0o400},
		{"token", "", "the file's mode is 0640: no access for others wanted", 0o640},
		{strings.Repeat("t", maxSecret+1), "", "cannot be read: not a short regular file", 0o600},
	} {
		path := write(t, tt.content)
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		fault := ""
		secret, err := Secret(path)
		if err != nil {
			fault = err.Error()
		}
		if secret != tt.secret || fault != tt.fault {
			t.Errorf("%.20q: got %q, %q, want %q, %q", tt.content, secret, fault, tt.secret, tt.fault)
		}
	}
	if _, err := Secret(filepath.Join(t.TempDir(), "none")); err == nil || err.Error() != "cannot be read: no such file or directory" {
		t.Errorf("no file: %v", err)
	}
}
