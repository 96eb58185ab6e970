// Command flake is the id server: a node that Erlang nodes call for ids. It also has commands
// that call a running node. Start at [table], the table of all commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/node/handshake"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/commands"
	"github.com/flake-go/flake/rel/flake/daemon"
	"github.com/flake-go/flake/rel/flake/migrate"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/usage"
)

// Exit codes.
const (
	exitFailure = 1 // could not start or continue
	exitUsage   = 2 // wrong flags, arguments or configuration
)

func main() {
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	stops = slices.DeleteFunc(stops, signal.Ignored) // such as SIGHUP under nohup
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stops...)
	os.Exit(run(cli.UntilSignal(signals, os.Exit), os.Args[1:], os.Stdout, os.Stderr))
}

// A subcommand is a row of the table: the command "flake NAME". Its help is generated from the row.
type subcommand struct {
	name    string // empty for the command that runs the node
	args    string // the arguments after the flags, in the notation of [usage.Command]
	maxArgs int
	does    string // one line, a predicate whose subject is the command
	more    string // more paragraphs, or empty

	// set adds the command's flags to f and returns the action to run once they are parsed.
	set func(f *cli.Flags) cli.Action
}

// table returns the table of commands. It is a function, because one of its rows, the help command, uses the table.
func table() []subcommand {
	return []subcommand{
		{"", "", 0, "runs the node", "", serve},
		{"get", "", 0, "takes ids from a running node", "", commands.Get},
		{"eval", "EXPRESSION", 1, "calls functions on a running node", "", commands.Eval},
		{"workers", "[release NUMBER | after-restore | withdraw | move PLACE]", 2,
			"shows which node is assigned which number", "", commands.Workers},
		{"check", "", 0, "shows whether the file of marks and the store agree, and what would happen at startup",
			commands.CheckMore, commands.Check},
		{"status", "", 0, "shows the state of a running node", commands.StatusMore, commands.Status},
		{"bench", "", 0, "puts load on a running node, measures it, and looks for duplicate ids",
			commands.BenchMore, commands.Bench},
		{"generate", "", 0, "makes ids without a node", commands.GenerateMore, commands.Generate},
		{"inspect", "ID...", math.MaxInt, "decodes ids of any format", commands.InspectMore, commands.Inspect},
		{"import", "", 0, "imports the time and the settings that boundary/flake left on disk",
			migrate.ImportMore, migrate.Import},
		{"takeover", "", 0, "replaces a running node of the original, boundary/flake",
			migrate.TakeoverMore, migrate.Takeover},
		{"version", "", 0, "shows the version and what it was built from", "", showVersion},
		{"completion", "bash|zsh|fish", 1,
			"prints a script that completes flake's commands and flags", "", completion},
		{"man", "", 0, "prints the manual page, flake(1)", "", manual},
		{"help", "[COMMAND]", 1, "shows the commands, or the flags of one", "", showHelp},
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := perform(ctx, args, stdout, stderr); err != nil {
		return complain(stderr, err)
	}
	return 0
}

// perform runs the command that the arguments name, or shows its help.
func perform(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	i, err := find(name)
	if err != nil {
		return err
	}
	f, command := cli.NewFlags(), table()[i]
	act := command.set(f)
	err = f.ParseArgs(args, command.maxArgs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return printHelp(name, stdout)
	case err != nil:
		return err
	}
	err = act(ctx, f.Args(), stdout, stderr)
	if errors.Is(err, handshake.ErrCookie) {
		err = fmt.Errorf("%w; set -setcookie, FLAKE_COOKIE, or node.cookie in the -config file "+
			"to the node's cookie", err)
	}
	return err
}

func find(name string) (int, error) {
	var names []string
	for i, c := range table() {
		if c.name == name {
			return i, nil
		}
		if c.name != "" { // without a command the node runs
			names = append(names, c.name)
		}
	}
	nearest := config.Nearest(", the nearest is ", name, names, config.Distance)
	return 0, cli.UsageError(fmt.Errorf("unknown command %q%s; see flake help", name, nearest))
}

// complain prints why the process ends, and returns the exit code. It does not hang even if nothing reads stderr.
func complain(stderr io.Writer, err error) int {
	out := output.New(stderr)
	text := strings.TrimPrefix(escape.Lines(err.Error()), "flake: ")
	// The library's errors already have the prefix "flake: ".
	fmt.Fprintln(out, "flake:", strings.ReplaceAll(text, ": flake: ", ": "))
	out.Close()
	if cli.IsUsageError(err) {
		return exitUsage
	}
	return exitFailure
}

func serve(f *cli.Flags) cli.Action {
	f.Identify("")
	noinput := f.Bool("noinput", false, "do not read standard input: show no prompt, even if it is a terminal")
	version := f.Bool("version", false, "show the version and exit, as flake version does")
	check := f.Bool("check-config", false, "show what would run and where each value is from, "+
		"check what can be checked without starting, and exit")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		if *version {
			return cli.PrintVersion(stdout)
		}
		if *check {
			return daemon.CheckConfig(f.Load, stdout, stderr)
		}
		return daemon.Run(ctx, f.Load, *noinput, stdout, stderr)
	}
}

// described returns the table in the form that help, completion and the manual page are generated from.
func described() (all []usage.Command) {
	for _, c := range table() {
		f := cli.NewFlags()
		c.set(f)
		all = append(all, usage.Command{Name: c.name, Args: c.args, Does: c.does, More: c.more, Flags: f.FlagSet})
	}
	return all
}

// showHelp shows the table of commands, or the help of one command.
func showHelp(*cli.Flags) cli.Action {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		return printHelp(strings.Join(args, ""), stdout)
	}
}

func printHelp(name string, w io.Writer) error {
	i, err := find(name)
	if err != nil {
		return err
	}
	all := described()
	_, err = io.WriteString(w, usage.Help(all, &all[i]))
	return err
}

func completion(*cli.Flags) cli.Action {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		script := usage.Shells[strings.Join(args, "")]
		if script == nil {
			return cli.UsageError(errors.New("the shell must be bash, zsh or fish"))
		}
		_, err := io.WriteString(stdout, script(described()))
		return err
	}
}

func manual(*cli.Flags) cli.Action {
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error {
		man := usage.Man(described(), cli.Version, "hands out unique, time-ordered ids", sections)
		_, err := io.WriteString(stdout, man)
		return err
	}
}

var sections = []usage.Section{
	{Title: "EXIT STATUS", Text: "0 on success, 1 on failure, 2 if flags, arguments or the configuration are wrong. " +
		"A second signal ends flake immediately, with 128 plus the signal's number."},
	{Title: "ENVIRONMENT", Text: "FLAKE_COOKIE is the cookie. FLAKE_ and a configuration key in capitals, " +
		"with underscores for its dots, sets that key: FLAKE_NODE_NAME is node.name. " +
		"Keys of [flake] have shorter names too, such as FLAKE_WORKER_ID. " +
		"Flags win over the environment, and the environment wins over the file."},
	{Title: "FILES", Text: "What must survive a restart is kept in the file that flake.timestamp_path names. " +
		"The default is /var/lib/flake/timestamp or, for users other than root, " +
		"~/.local/state/flake/timestamp."},
	{Title: "SEE ALSO", Text: "The manual: https://github.com/flake-go/flake#documentation"},
}

func showVersion(*cli.Flags) cli.Action {
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error { return cli.PrintVersion(stdout) }
}
