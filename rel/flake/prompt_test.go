package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
)

// Currently an id has 18 digits in base 62.
var anID = regexp.MustCompile(`"(?:[0-9A-Za-z]{18}|[0-9A-Za-z]{22})"`)

// TestPrompt runs the session shown in docs/operating/commands.md on a terminal.
func TestPrompt(t *testing.T) {
	t.Parallel()
	shown := sessionOf(t, "../../docs/operating/commands.md")
	const prompt = "> "
	var typed strings.Builder
	for line := range strings.Lines(shown) {
		if before, input, ok := strings.Cut(line, prompt); ok && strings.HasPrefix(before, "(") {
			typed.WriteString(input)
		}
	}
	testenv.Need(t, "script")
	// script gives the command its own terminal. A log line could be written at any time, and
	// would appear in the session.
	config := configFile(t, "[log]\nlevel = \"error\"")
	cmd := exec.Command("script", "-qec", command+" -config "+config, "/dev/null")
	cmd.Env = append(os.Environ(), "ERL_EPMD_PORT="+freePort(t), "TERM=xterm", "PATH=")
	cmd.Stdin = strings.NewReader(typed.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.ReplaceAll(string(out), "\r\n", "\n")
	want := anID.ReplaceAllString(shown, `"ID"`)
	if !strings.Contains(anID.ReplaceAllString(got, `"ID"`), want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// sessionOf returns the session in a file: the block that begins with the first
// prompt.
func sessionOf(t *testing.T, file string) string {
	t.Helper()
	text := readFile(t, file)
	_, session, ok := strings.Cut(text, "```\n(")
	if !ok {
		t.Fatalf("%s: no session", file)
	}
	session, _, _ = strings.Cut(session, "```")
	return "(" + session
}
