package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
)

// start.sh says what it needs if Go is missing or too old. In a checkout that git does not read, it builds without the
// commit, for which Go would ask git.
func TestStart(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "sh", "sed", "expr", "dirname", "cat", "chmod")
	// The functions replace the programs.
	const programs = `git() { $GIT; }
go() {
	[ $1 = build ] || { echo $VERSION; return; }
	echo builds with$GOFLAGS
	printf '#!/bin/sh\necho runs with "$@"' > rel/flake/bin/flake
	chmod +x rel/flake/bin/flake
}
. ./start.sh`
	for name, tt := range map[string]struct{ version, git, want string }{
		"missing":         {"", "true", "no Go"},
		"old":             {"go version go1.19.8 linux/amd64", "true", "go1.19.8"},
		"may not replace": {"go version go1.25.0 linux/amd64", "true", "go1.25.0"}, // GOTOOLCHAIN=local
		"new":             {"go version go1.26.0 linux/amd64", "true", "runs with -config rel/files/sys.toml -x"},
		"devel":           {"go version go1.100-devel_1234 linux/amd64", "true", "runs with"},
		"another user's":  {"go version go1.26.0 linux/amd64", "false", "builds with -buildvcs=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "rel/flake/bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"start.sh", "go.mod"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(readFile(t, "../../"+file)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			start := exec.Command("sh", "-c", programs, "start.sh", "-x")
			start.Dir = dir
			start.Env = append(os.Environ(), "VERSION="+tt.version, "GIT="+tt.git, "GOFLAGS=")
			text, err := start.CombinedOutput()
			out := string(text)
			refused := strings.Contains(out, "needs Go 1.") && strings.Contains(out, "docker run")
			if !strings.Contains(out, tt.want) || refused == strings.Contains(out, "runs with") || refused != (err != nil) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
