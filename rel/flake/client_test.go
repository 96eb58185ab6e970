package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
)

// The client commands work with a running node through both doors.
func TestClients(t *testing.T) {
	t.Parallel()
	n := startCommand(t, command, "",
		fmt.Sprintf("cookie = %q\n[http]\nlisten = \"127.0.0.1:0\"\n%s", cookie, generatorsOf()))
	url := n.await("  HTTP ")
	var names []string
	for _, k := range formats.Kinds {
		names = append(names, generatorOf(k))
	}
	example := filepath.Join(built, "example")
	need(t, buildRace(example, "../../client/example"))
	for _, tt := range []struct {
		what    string
		args    []string // the flags that choose the door
		unknown string   // the message about a missing generator
	}{
		{"distribution", nil, "noproc"},
		{"HTTP", []string{"-url", url}, "one of " + strings.Join(names, ", ")},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := spawn(t, n.port, example, append([]string{"-cookie", cookie, "-most", patience.String()}, tt.args...)...)
			want := regexp.MustCompile(`^one: .*\nmany:     1000, from .*\ntoday's: .*\nleased:   800000, .*\n$`)
			if status := p.wait(); status != 0 || !want.MatchString(p.output()) {
				t.Errorf("example: exit status %d", status)
			}
			p = spawn(t, n.port, command, append([]string{"get", "-n", "20001", "-base", "36"}, tt.args...)...)
			status := p.wait()
			lines := strings.Fields(p.output())
			if status != 0 || len(lines) != 20001 {
				t.Fatalf("get: exit status %d, %d lines", status, len(lines))
			}
			var last flake.ID
			for _, line := range lines {
				id, err := flake.ParseBase(line, 36)
				if err != nil || id.Compare(last) <= 0 {
					t.Fatalf("got the id %v after %v, %v", line, last, err)
				}
				last = id
			}
			p = spawn(t, n.port, command, append([]string{"get", "-n", "3", "-base", "16", "-generator", "snos"}, tt.args...)...)
			if status := p.wait(); status != 0 || !regexp.MustCompile(`^([0-9A-F]{20}\n){3}$`).MatchString(p.output()) {
				t.Errorf("get -generator snos: exit status %d, %q", status, p.output())
			}
			for _, k := range formats.Kinds {
				f := k.Format(nil)
				p = spawn(t, n.port, command, slices.Concat([]string{"get", "-n", "2", "-generator", generatorOf(k)}, tt.args)...)
				status, texts := p.wait(), strings.Fields(p.output())
				for _, text := range texts {
					if id, err := f.Parse(text, formats.Canonical); err != nil ||
						string(f.Append(nil, id, formats.Canonical)) != text {
						t.Errorf("get of %s: %q, %v", k.Name, text, err)
					}
				}
				if status != 0 || len(texts) != 2 {
					t.Errorf("get of %s: exit status %d, %q", k.Name, status, p.output())
				}
			}
			for args, want := range map[string]string{
				"-generator snowflakes -base base58":       `([1-9A-HJ-NP-Za-km-z]{9,11}\n){2}`,
				"-generator flake_idgens -base base32":     `([13-9a-km-uw-z]{11,13}\n){2}`,
				"-generator snos -base canonical":          `([2-9a-x]{16}\n){2}`,
				"-generator snos -meta 77":                 `([2-9a-x]{16}\n){2}`,
				"-generator flake -base uuid":              `(00000[0-9a-f]{3}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n){2}`,
				"-generator flake -base crockford":         `(0000[0-9A-HJKMNP-TV-Z]{22}\n){2}`,
				"-generator snowflakes -base crockford":    `([0-9A-F][0-9A-HJKMNP-TV-Z]{12}\n){2}`,
				"-generator snos -meta 77 -base crockford": `([0-9A-HJKMNP-TV-Z]{16}\n){2}`,
				"-generator snos -meta 77 -base 16":        `([0-9A-F]{10}4D[0-9A-F]{8}\n){2}`,
				"-generator snos -meta 255 -base 16":       `([0-9A-F]{10}FF[0-9A-F]{8}\n){2}`,
			} {
				p = spawn(t, n.port, command, slices.Concat([]string{"get", "-n", "2"}, strings.Fields(args), tt.args)...)
				if status := p.wait(); status != 0 || !regexp.MustCompile("^"+want+"$").MatchString(p.output()) {
					t.Errorf("get %s: exit status %d, %q, want %s", args, status, p.output(), want)
				}
			}
			for _, args := range []string{"-base 63", "-base x", "-base CANONICAL", "-base BASE58", "-meta 1 -base base58",
				"-meta 256", "-meta -1", "-meta -2"} {
				p = spawn(t, n.port, command, append([]string{"get"}, strings.Fields(args)...)...)
				if status := p.wait(); status != exitUsage {
					t.Errorf("get %s: exit status %d, %q, want %d", args, status, p.output(), exitUsage)
				}
			}
			for _, args := range []string{"-generator snowflakes -meta 1", "-generator snos -base base58"} {
				p = spawn(t, n.port, command, slices.Concat([]string{"get"}, strings.Fields(args), tt.args)...)
				if status := p.wait(); status != exitFailure || !strings.Contains(p.output(), "the generator has another format") {
					t.Errorf("get %s: exit status %d, %q, want %d", args, status, p.output(), exitFailure)
				}
			}
			p = spawn(t, n.port, command, append([]string{"get", "-generator", "nothing"}, tt.args...)...)
			if status := p.wait(); status != exitFailure || !strings.Contains(p.output(), tt.unknown) {
				t.Errorf("get -generator nothing: exit status %d, %q, want %q", status, p.output(), tt.unknown)
			}
		})
	}
}
