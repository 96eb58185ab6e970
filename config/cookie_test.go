package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A cookie comes from the last flag that sets it, or else from the file, or else from the home
// directory. If none has one, it is the published one.
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
		{"", "HOME\r\n \n", nil, "HOME", "HOME"},
		{"", "", nil, PublishedCookie, ""},
	} {
		home := setHome(t, tt.home, 0o400)
		c, err := Load(write(t, tt.file), tt.flags...)
		if err != nil || c.Node.Cookie != tt.want || strings.ReplaceAll(c.Node.CookieFrom, home, "HOME") != tt.from {
			t.Errorf("%+v: got %q from %q, %v", tt, c.Node.Cookie, c.Node.CookieFrom, err)
		}
	}
	t.Chdir(filepath.Dir(setHome(t, "HOME", 0o400)))
	os.Unsetenv("HOME")
	os.Unsetenv("XDG_CONFIG_HOME") // the current directory must not count as the home directory
	if c, err := Load(""); err != nil || c.Node.Cookie != PublishedCookie {
		t.Errorf("without HOME: got %q from %q, %v", c.Node.Cookie, c.Node.CookieFrom, err)
	}
}

// Erlang's cookie is also in the directory of the user's configuration, but the one in the home directory
// has precedence.
func TestConfigHomeCookie(t *testing.T) {
	for _, tt := range []struct{ home, own, dir string }{
		{home: "", own: "CONFIG", dir: "xdg"},
		{home: "", own: "CONFIG", dir: ".config"},
		{home: "HOME", own: "CONFIG", dir: "xdg"},
		{home: "", own: "", dir: "xdg"},
	} {
		path := setHome(t, tt.home, 0o400)
		dir := filepath.Join(filepath.Dir(path), tt.dir)
		if tt.dir == "xdg" {
			t.Setenv("XDG_CONFIG_HOME", dir)
		}
		want, from := cmp.Or(tt.home, tt.own, PublishedCookie), ""
		if tt.own != "" {
			writeCookie(t, filepath.Join(dir, "erlang", HomeCookieFile), tt.own, 0o400)
			from = filepath.Join(dir, "erlang", HomeCookieFile)
		}
		if tt.home != "" {
			from = path
		}
		c, err := Load("")
		if err != nil || c.Node.Cookie != want || c.Node.CookieFrom != from {
			t.Errorf("%+v: got %q from %q, %v", tt, c.Node.Cookie, c.Node.CookieFrom, err)
		}
		if tt.home == "" && tt.own != "" {
			os.Chmod(from, 0o644)
			if _, err := Load(""); err == nil || !strings.Contains(err.Error(), from) {
				t.Errorf("%+v, readable by others: got %v", tt, err)
			}
		}
	}
}

// A home cookie that is invalid or published, or that others can read, is refused, unless a cookie
// is set elsewhere.
func TestBadHomeCookie(t *testing.T) {
	for _, tt := range []struct {
		cookie string
		mode   os.FileMode
		want   string
	}{
		{"SECRET\n", 0o440, "HOME: node.cookie: the file's mode is 0440: " +
			"other users must not have access (chmod 400), or set a cookie elsewhere"},
		{"SECRET\n", 0o604, "HOME: node.cookie: the file's mode is 0604: " +
			"other users must not have access (chmod 400), or set a cookie elsewhere"},
		{"\nSECRET", 0o600, "HOME: node.cookie: the file has more than one line, which Erlang refuses"},
		{"\n", 0o600, "HOME: node.cookie = (hidden): must be 1 to 255 printable characters of Latin-1"},
		{"SÉCRET\n", 0o600, "HOME: node.cookie: must be ASCII, as Erlang requires in this file"},
		{"SECRET\nmore", 0o600, "HOME: node.cookie: the file has more than one line, which Erlang refuses"},
		{"SECRET\x7f\n", 0o600, "HOME: node.cookie = (hidden): must be 1 to 255 printable characters of Latin-1"},
		{strings.Repeat("SECRET", 1000), 0o600, "HOME: node.cookie: the file is 6000 bytes long; the limit is 4096"},
		{"flake\n", 0o600,
			`HOME: node.cookie = "flake": this cookie is published: set your own, because node.name flake@10.0.0.1 can be ` +
				`reached from other hosts`},
	} {
		home := setHome(t, tt.cookie, tt.mode)
		file := write(t, "[node]\nname = 'flake@10.0.0.1'")
		_, err := Load(file)
		if err == nil {
			t.Errorf("%q: no error", tt.cookie)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), home, "HOME"); got != tt.want {
			t.Errorf("%.20q:\ngot  %s\nwant %s", tt.cookie, got, tt.want)
		}
		if _, err := Load(file, Flag{"-setcookie", cookieKey, "own"}); err != nil {
			t.Errorf("with -setcookie set, and %q at home: got %v, want no error", tt.cookie, err)
		}
		_, err = Load(write(t, "[node]\ncookie_file = 'none'"))
		if err == nil || strings.Contains(err.Error(), home) {
			t.Errorf("with cookie_file set, and %q at home: got %v, want only an error about cookie_file",
				tt.cookie, err)
		}
	}
}

// Characters beyond ÿ are refused, because Erlang digests each character of a cookie as a byte.
func TestCookieCharacters(t *testing.T) {
	for cookie, ok := range map[string]bool{"-a": true, "+a": true, "café": true, "ÿ": true, "Ā": false,
		"日本": false, strings.Repeat("é", 255): true} {
		if _, err := Load("", Flag{"-setcookie", cookieKey, cookie}); (err == nil) != ok {
			t.Errorf("%s: %v", cookie, err)
		}
	}
}

// setHome makes a home directory and returns the path of its cookie. If cookie is empty, the
// directory has none.
func setHome(t *testing.T, cookie string, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	path := filepath.Join(dir, HomeCookieFile)
	if cookie != "" {
		writeCookie(t, path, cookie, mode)
	}
	return path
}

func writeCookie(t *testing.T, path, cookie string, mode os.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(cookie), mode)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Any source can name a file that contains the cookie. The file's cookie overrides the cookies and
// files of sources with lower priority.
func TestCookieFiles(t *testing.T) {
	path := write(t, "of its file\n")
	env := Flag{"FLAKE_COOKIE", cookieKey, "of the environment"}
	envFile := Flag{"FLAKE_COOKIE_FILE", cookieKey + ofFile, path}
	flag := Flag{"-setcookie", cookieKey, "of the flag"}
	const file, none = "[node]\ncookie = 'of the file'", "[node]\ncookie = ''"
	named := fmt.Sprintf("[node]\ncookie_file = %q", path)
	setHome(t, "HOME", 0o400)
	for _, tt := range []struct {
		file       string
		flags      []Flag
		want, from string
	}{
		{named, nil, "of its file", path},
		{none + named[len("[node]"):], nil, "of its file", path},
		{named, []Flag{env}, "of the environment", "FLAKE_COOKIE"},
		{named, []Flag{envFile, flag}, "of the flag", "-setcookie"},
		{file, []Flag{envFile}, "of its file", path},
		{file, []Flag{{"FLAKE_COOKIE_FILE", cookieKey + ofFile, ""}}, "of the file", ""},
		{"", []Flag{envFile}, "of its file", path},
		{"[node]\nprevious_cookie_file = '" + path + "'", nil, "HOME",
			filepath.Join(os.Getenv("HOME"), HomeCookieFile)},
	} {
		c, err := Load(write(t, tt.file), tt.flags...)
		if err != nil || c.Node.Cookie != tt.want || c.Node.CookieFrom != tt.from {
			t.Errorf("%+v: got %q from %q, %v", tt, c.Node.Cookie, c.Node.CookieFrom, err)
		}
	}
	c, err := Load(write(t, "[node]\nprevious_cookie_file = '"+path+"'"))
	if err != nil || c.Node.PreviousCookie != "of its file" {
		t.Errorf("previous cookie %q, %v", c.Node.PreviousCookie, err)
	}
}

func TestBadCookieFiles(t *testing.T) {
	long := write(t, strings.Repeat("é", 256))
	for _, tt := range []struct{ file, want string }{
		{"cookie = 'x'\ncookie_file = 'none'",
			`FILE:3: node.cookie_file = "none": node.cookie is set too: set only one of the two`},
		{"cookie_file = 'none'", `FILE:2: node.cookie_file = "none": cannot be read: no such file or directory`},
		{"previous_cookie_file = '/'", `FILE:2: node.previous_cookie_file = "/": cannot be read: not a regular file`},
		{"cookie_file = 7", `FILE:2: node.cookie_file = 7: must be the path of a file`},
		{"cookie_file = '" + long + "'",
			long + ": node.cookie = (hidden): must be 1 to 255 printable characters of Latin-1"},
		{"name = 'a@10.0.0.1'\ncookie_file = '" + write(t, PublishedCookie) + "'",
			`node.cookie = "flake": this cookie is published: set your own, because node.name a@10.0.0.1 can be ` +
				`reached from other hosts`},
	} {
		file := write(t, "[node]\n"+tt.file)
		_, err := Load(file)
		if err == nil || !strings.HasSuffix(strings.ReplaceAll(err.Error(), file, "FILE"), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.file, err, tt.want)
		}
	}
}

// In Kubernetes, the path of a secret leads through the link ..data, which is replaced when the
// secret changes.
func TestSecretOfKubernetes(t *testing.T) {
	dir := t.TempDir()
	mount := func(name, content string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "cookie"), []byte(content), 0o400); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(name, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "cookie")
	if err := os.Symlink("..data/cookie", path); err != nil {
		t.Fatal(err)
	}
	for _, cookie := range []string{"first", "second"} {
		mount("..of_"+cookie, cookie)
		c, err := Load("", Flag{"FLAKE_COOKIE_FILE", cookieKey + ofFile, path})
		if err != nil || c.Node.Cookie != cookie || c.Node.CookieFrom != path {
			t.Errorf("got %q from %s, %v, want %q", c.Node.Cookie, c.Node.CookieFrom, err, cookie)
		}
	}
}
