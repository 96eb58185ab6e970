package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The installed configuration is read only if nothing else names a node, because its token is for that node alone.
func TestInstalled(t *testing.T) {
	dir := t.TempDir()
	installed, other := filepath.Join(dir, "sys.toml"), filepath.Join(dir, "other.toml")
	for _, path := range []string{installed, other} {
		if err := os.WriteFile(path, []byte("[http]\ntoken_file = \""+path+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ installed, args, environ, want string }{
		{installed, "", "", installed},
		{installed, "-setcookie x", "", installed},
		{installed, "-config " + other, "", other},
		{installed, "-name a@b", "", ""},
		{installed, "-url http://127.0.0.1:8465", "", ""},
		{installed, "", "a@b", ""},
		{"", "", "", ""},
		{installed + ".none", "", "", ""},
	} {
		t.Setenv("FLAKE_NODE_NAME", test.environ)
		t.Setenv("FLAKE_COOKIE", "own")
		f := NewFlags()
		f.Identify(test.installed)
		f.String("url", "", "")
		if err := f.ParseArgs(strings.Fields(test.args), 0); err != nil {
			t.Fatal(err)
		}
		if cfg, err := f.Load(); err != nil || cfg.HTTP.TokenFile != test.want {
			t.Errorf("%+v: %q, %v", test, cfg.HTTP.TokenFile, err)
		}
	}
}

// If the installed configuration is wrong, the error says why it is read, but gives the remedy for another
// error only for that error.
func TestInstalledIsWrong(t *testing.T) {
	installed := filepath.Join(t.TempDir(), "sys.toml")
	if err := os.WriteFile(installed, []byte("[http]\nx = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := NewFlags()
	f.Identify(installed)
	_, err := f.Load()
	if err == nil || !strings.Contains(err.Error(), "http.x") || !strings.Contains(err.Error(), "-config") ||
		strings.Contains(err.Error(), "root") {
		t.Error(err)
	}
}

// If the directory of the mark cannot be created, the error names the key to set.
func TestCreateDir(t *testing.T) {
	dir := t.TempDir()
	if err := createDir(filepath.Join(dir, "flake", "timestamp")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file", "flake", "timestamp")
	if err := createDir(path); err == nil || !strings.Contains(err.Error(), "flake.timestamp_path "+path) {
		t.Errorf("%v, want the key and its value", err)
	}
}
