package usage

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/internal/testenv"
)

// table has one of everything.
func table() []Command {
	flags := func(set func(f *flag.FlagSet)) *flag.FlagSet {
		f := flag.NewFlagSet("", flag.ContinueOnError)
		set(f)
		return f
	}
	return []Command{
		{"", "", "runs", "", flags(func(f *flag.FlagSet) {
			f.String("config", "", "read `FILE`: it's [there]")
			f.Bool("quiet", false, `say nothing, not even "\n"`)
		})},
		{"take", "", "takes ids", "One.\n\n.Two\n'three", flags(func(f *flag.FlagSet) {
			f.String("over", "erlang", "by way of `erlang|http`")
			f.Int("n", 1, "how many")
			f.Duration("time", 0, "how long")
			f.Duration("wait", time.Second, "how long before")
		})},
		{"do", "[this NUMBER | that-one]", "does it", "", flags(func(*flag.FlagSet) {})},
		{"help", "[COMMAND]", "shows help", "", flags(func(*flag.FlagSet) {})},
	}
}

func TestHelp(t *testing.T) {
	all := table()
	for i, want := range []string{
		"flake [FLAGS]                     runs\n" +
			"flake take [FLAGS]                takes ids\n" +
			"flake do [this NUMBER | that-one]   does it\n" +
			"flake help [COMMAND]              shows help\n\n" +
			"For a command's flags: flake help COMMAND. The flags of flake itself:\n\n" +
			"  -config FILE\n    \tread FILE: it's [there]\n" +
			"  -quiet\n    \tsay nothing, not even \"\\n\"\n",
		"flake take [FLAGS]\n\nflake take takes ids.\n\nOne.\n\n.Two\n'three\n\nFlags:\n\n" +
			"  -n int\n    \thow many (default 1)\n" +
			"  -over erlang|http\n    \tby way of erlang|http (default erlang)\n" +
			"  -time duration\n    \thow long\n" +
			"  -wait duration\n    \thow long before (default 1s)\n",
		"flake do [this NUMBER | that-one]\n\nflake do does it.\n",
		"flake help [COMMAND]\n\nflake help shows help.\n",
	} {
		spaces := regexp.MustCompile(`  +`) // the widths of columns do not matter
		got := Help(all, &all[i])
		if got, want := spaces.ReplaceAllString(got, "  "), spaces.ReplaceAllString(want, "  "); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// bash offers these completions for the last word.
func TestBash(t *testing.T) {
	testenv.Need(t, "bash")
	script := filepath.Join(t.TempDir(), "flake.bash")
	if err := os.WriteFile(script, []byte(bash(table())), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string]string{
		"":                   "-config -quiet take do help",
		"t":                  "take",
		"-":                  "-config -quiet",
		"-config ":           "", // bash offers files
		"-config f -":        "-config -quiet",
		"x":                  "",
		"take ":              "-n -over -time -wait",
		"take -o":            "-over",
		"take -over ":        "erlang http",
		"take -over h":       "http",
		"take -n ":           "",
		"take -n 1 -ti":      "-time",
		"do ":                "this that-one",
		"do that":            "that-one",
		"help t":             "take",
		"take -over http -w": "-wait",
	} {
		words := strings.Split("flake "+line, " ")
		args := append([]string{"-c",
			`. "$0" && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _flake; printf "%s " "${COMPREPLY[@]}"`, script},
			words...)
		out, err := exec.Command("bash", args...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
}

// The scripts for zsh and fish contain the commands and flags. If the shell is installed, it parses
// them.
func TestOtherShells(t *testing.T) {
	for shell, want := range map[string][]string{
		"zsh": {
			`'-config[read FILE\: it'\''s \[there\]]:FILE:_files'`, `'-quiet[say nothing, not even "\\n"]'`,
			`'take:takes ids'`,
			`'-over[by way of erlang|http]:value:(erlang http)'`, `'-n[how many]:int: '`,
			`'1:argument:(this that-one)'`, `'1:argument:(take do help)'`,
		},
		"fish": {
			`'not __fish_seen_subcommand_from take do help' -a take -d 'takes ids'`,
			`-o config -r -F -d 'read FILE: it'\''s [there]'`,
			`-o quiet -d 'say nothing, not even "\\n"'`,
			`'__fish_seen_subcommand_from take' -o over -x -a 'erlang http' -d`,
			`'__fish_seen_subcommand_from take' -o n -x -d 'how many'`,
			`'__fish_seen_subcommand_from do' -a 'this that-one'`,
		},
	} {
		script := Shells[shell](table())
		for _, want := range want {
			if !strings.Contains(script, want) {
				t.Errorf("no %s in\n%s", want, script)
			}
		}
		if _, err := exec.LookPath(shell); err != nil {
			t.Log(err)
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(shell, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

// The manual page has only macros of man(7), and no text that looks like a macro. If groff is installed, it
// prints no warning.
func TestMan(t *testing.T) {
	page := Man(table(), "1.2", "makes - ids", []Section{{"SEE ALSO", "it"}})
	for _, want := range []string{
		".TH FLAKE 1 \"\" \"flake 1.2\" \"User Commands\"\n", "flake \\- makes \\- ids\n", "\nflake take [FLAGS]\n",
		"\n.SS \"flake do [this NUMBER | that\\-one]\"\nflake do does it.\n",
		"\n.TP\n\\fB\\-wait\\fR \\fIduration\\fR\nhow long before (default 1s)\n",
		"\n.PP\nOne.\n.PP\n\\&.Two\n\\(aqthree\n",
		"\n.TP\n\\fB\\-quiet\\fR \\fI\\fR\nsay nothing, not even \"\\en\"\n", "\n.SH \"SEE ALSO\"\nit\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	macros := []string{".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi"}
	for line := range strings.Lines(page) {
		if word := strings.Fields(line); len(word) == 0 || line[0] == '.' && !slices.Contains(macros, word[0]) ||
			line[0] == '\'' {
			t.Errorf("%q is neither a macro of man(7) nor text", line)
		}
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Log(err)
		return
	}
	groff := exec.Command("groff", "-man", "-ww", "-z", "-Tascii")
	groff.Stdin = strings.NewReader(page)
	if out, err := groff.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
