package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
)

// needRoot skips a test that runs commands as another user.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Missing(t, errors.New("only root can run commands as another user"))
	}
}

// Without a timestamp_path, the time is kept in the user's state directory.
func TestTimestampPath(t *testing.T) {
	t.Parallel()
	needRoot(t)
	home := t.TempDir()
	for _, dir := range []string{filepath.Dir(home), home} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for variable, want := range map[string]string{
		"XDG_STATE_HOME=" + home: home + "/flake/timestamp",
		"XDG_STATE_HOME=.":       home + "/.local/state/flake/timestamp",
	} {
		p := spawn(t, freePort(t), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
			"env", "HOME="+home, variable, "PATH=", command, "-noinput", "-name", "flake@127.0.0.1", "-setcookie", cookie)
		p.await("  EPMD ")
		if _, err := os.Stat(want); err != nil {
			t.Errorf("%s: %v", variable, err)
		}
		p.signal(syscall.SIGHUP)
		p.awaitText("the configuration was reloaded")
		p.signal(syscall.SIGTERM)
		if p.wait(); strings.Contains(p.output(), "need a restart") {
			t.Errorf("%s: a reload reports changes to keys that are not set:\n%s", variable, p.output())
		}
	}
}
