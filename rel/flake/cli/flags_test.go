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

// If the default directory of the mark cannot be created, the error names the key to set.
func TestTimestampPath(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root's does not depend on the environment")
	}
	home := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(home, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", home)
	want := "flake.timestamp_path " + home + "/.local/state/flake/timestamp, the default: "
	if path, err := TimestampPath(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q, %v, want %s...", path, err, want)
	}
	t.Setenv("HOME", filepath.Dir(home))
	if path, err := TimestampPath(); err != nil {
		t.Errorf("%q, %v", path, err)
	}
}
