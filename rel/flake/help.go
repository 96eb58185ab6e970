package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/usage"
)

// described returns the table for what is made of it.
func described() (all []usage.Command) {
	for _, c := range table() {
		f := cli.NewFlags()
		c.set(f)
		all = append(all, usage.Command{Name: c.name, Args: c.args, Does: c.does, More: c.more, Flags: f.FlagSet})
	}
	return all
}

// showHelp shows the table of commands, or one of them.
func showHelp(*cli.Flags) cli.Action {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		return printHelp(strings.Join(args, ""), stdout)
	}
}

func printHelp(name string, w io.Writer) error {
	all := described()
	i := slices.IndexFunc(all, func(c usage.Command) bool { return c.Name == name })
	if i < 0 {
		return unknownCommand(name)
	}
	_, err := io.WriteString(w, usage.Help(all, &all[i]))
	return err
}

func unknownCommand(name string) error {
	return cli.UsageError(fmt.Errorf("unknown command %q; see flake help", name))
}

// completion prints a script for a shell.
func completion(*cli.Flags) cli.Action {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		script := usage.Shells[strings.Join(args, "")]
		if script == nil {
			return cli.UsageError(errors.New("which shell? bash, zsh or fish wanted"))
		}
		_, err := io.WriteString(stdout, script(described()))
		return err
	}
}

// manual prints the page flake(1).
func manual(*cli.Flags) cli.Action {
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error {
		_, err := io.WriteString(stdout, usage.Man(described(), cli.Version, "hands out unique, time-ordered ids", sections))
		return err
	}
}

var sections = []usage.Section{
	{Title: "EXIT STATUS", Text: "0 if it went well, 1 if not, 2 if flags, arguments or the configuration are wrong. " +
		"A second signal ends flake at once, with 128 and its number."},
	{Title: "ENVIRONMENT", Text: "FLAKE_COOKIE is the cookie. FLAKE_ and a key of the configuration in capitals, with underscores " +
		"for its dots, sets that key: FLAKE_NODE_NAME is node.name. Flags win over the environment, and that over the file."},
	{Title: "FILES", Text: "What must outlive a restart is kept in the file that flake.timestamp_path names, without it in " +
		"/var/lib/flake/timestamp, or of another user than root in ~/.local/state/flake/timestamp."},
	{Title: "SEE ALSO", Text: "The manual: https://github.com/flake-go/flake#documentation"},
}

// showVersion prints what runs.
func showVersion(*cli.Flags) cli.Action {
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error { return cli.PrintVersion(stdout) }
}
