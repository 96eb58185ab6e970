package main

import (
	"bytes"
	"flag"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/flake-go/flake/rel/flake/cli"
)

// called returns what a command prints, and its exit status.
func called(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), status
}

// The help lists each command, and three ways show a command's own help with its flags.
func TestHelp(t *testing.T) {
	all, _, _ := called(t, "help")
	for _, c := range described() {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(c.Line()) + ` +` + regexp.QuoteMeta(c.Does) +
			`$`).MatchString(all) {
			t.Errorf("%q is not in\n%s", c.Name, all)
		}
		command := strings.Fields(c.Name)
		asked, _, status := called(t, append([]string{"help"}, command...)...)
		if status != 0 {
			t.Errorf("help %s: exit status %d", c.Name, status)
		}
		for _, flag := range []string{"-h", "--help"} {
			if out, _, status := called(t, append(command, flag)...); out != asked || status != 0 {
				t.Errorf("%s %s: exit status %d,\n%s", c.Name, flag, status, out)
			}
		}
		c.Flags.VisitAll(func(f *flag.Flag) {
			if !strings.Contains(asked, "  -"+f.Name) {
				t.Errorf("no -%s in\n%s", f.Name, asked)
			}
		})
	}
}

// The manual page and the scripts for shells contain all commands and flags.
func TestGenerated(t *testing.T) {
	for _, of := range []string{"man", "completion bash", "completion zsh", "completion fish"} {
		text, _, status := called(t, strings.Fields(of)...)
		if text = strings.ReplaceAll(text, `\-`, "-"); status != 0 {
			t.Errorf("%s: exit status %d", of, status)
		}
		for _, c := range described() {
			if !strings.Contains(text, c.Name) {
				t.Errorf("%s does not contain %s", of, c.Name)
			}
			c.Flags.VisitAll(func(f *flag.Flag) {
				if !regexp.MustCompile(`(-|-o )\b` + f.Name + `\b`).MatchString(text) {
					t.Errorf("%s does not contain -%s", of, f.Name)
				}
			})
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	for args, want := range map[string]string{
		"foo":              "flake: unknown command \"foo\"; see flake help\n",
		"x":                "flake: unknown command \"x\"; see flake help\n",
		"stauts -config x": "flake: unknown command \"stauts\", the nearest is status; see flake help\n",
		"help foo":         "flake: unknown command \"foo\"; see flake help\n",
		"completion":       "flake: the shell must be bash, zsh or fish\n",
		"completion csh":   "flake: the shell must be bash, zsh or fish\n",
		"help get get":     "flake: unexpected argument \"get\"; the command has no flags\n",
		"version -config":  "flake: flag provided but not defined: -config; the command has no flags\n",
		"workers -x": "flake: flag provided but not defined: -x; flags are -again, -config, -margin, -name, " +
			"-setcookie, -sure, -until\n",
		"workers a b c": "flake: unexpected argument \"c\"; flags are -again, -config, -margin, -name, " +
			"-setcookie, -sure, -until\n",
		"workers after-restore -again": "flake: -again must be before \"after-restore\": flags go before arguments\n",
		"workers release 7 --config=x": "flake: -config must be before \"release\": flags go before arguments\n",
		"-noinput workers": "flake: unexpected argument \"workers\"; flags are -check-config, -config, -name, -noinput, " +
			"-setcookie, -version\n",
	} {
		stdout, stderr, status := called(t, strings.Fields(args)...)
		if stdout != "" || stderr != want || status != exitUsage {
			t.Errorf("%s: exit status %d, %q, %q, want %q", args, status, stdout, stderr, want)
		}
	}
}

func TestVersion(t *testing.T) {
	want := regexp.MustCompile(`^flake ` + regexp.QuoteMeta(cli.Version) + `\ncommit .+\n` +
		regexp.QuoteMeta(runtime.Version()) + ` ` + runtime.GOOS + `/` + runtime.GOARCH + `\n$`)
	for _, arg := range []string{"version", "-version", "--version"} {
		if stdout, _, status := called(t, arg); status != 0 || !want.MatchString(stdout) {
			t.Errorf("%s: exit status %d, %q", arg, status, stdout)
		}
	}
}
