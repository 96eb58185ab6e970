package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// A mistake is reported to the operator with the file, the key and what is allowed.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		node  string // settings in the file
		flags []string
		want  string // FILE stands for the file's path
	}{
		{"unknown key", "cokie = 'x'", nil,
			`FILE:2: node.cokie: unknown, the nearest known is node.cookie`},
		{"cookie without quotes", "cookie = secret", nil,
			`FILE:2: node.cookie = (hidden): not TOML: the value must be in quotes`},
		{"cookie with a wrong escape", `previous_cookie = "secret\xyz"`, nil,
			`FILE:2: node.previous_cookie = (hidden): not TOML: the value must be in quotes`},
		{"no file", "", []string{"-config", "none.toml"},
			`none.toml: cannot be read: no such file or directory`},
		{"no host by flag", "", []string{"-name", "flake"},
			`-name: node.name = "flake": must be name@host: letters, digits, _ and - before the @, no space after ` +
				`it, at most 255 bytes`},
		{"empty cookie by flag", "", []string{"-setcookie", ""},
			`-setcookie: node.cookie = (hidden): must be 1 to 255 printable characters of Latin-1`},
		{"unknown flag", "", []string{"-cookie", "x"},
			`flag provided but not defined: -cookie; flags are -check-config, -config, -name, -noinput, -setcookie, -version`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := configFile(t, tt.node)
			cmd := exec.Command(command, append([]string{"-config", file}, tt.flags...)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Run()
			if status := cmd.ProcessState.ExitCode(); status != exitUsage {
				t.Errorf("exit status %d, want %d", status, exitUsage)
			}
			want := "flake: " + tt.want + "\n"
			if got := strings.ReplaceAll(stderr.String(), file, "FILE"); got != want {
				t.Errorf("standard error:\ngot  %swant %s", got, want)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: %s", stdout.String())
			}
		})
	}
}
