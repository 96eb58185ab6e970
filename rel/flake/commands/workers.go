package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/output"
)

// storeTime limits how long a command waits for the store in total.
const storeTime = 5 * time.Second

var errWorkers = errors.New("flake workers: must have no argument, " +
	"or release NUMBER, after-restore, withdraw or move PLACE")

// Workers shows which node has which number, releases a number, or records in the store
// that the store was restored, or that a fleet moves to it.
func Workers(f *cli.Flags) cli.Action {
	f.Identify(cli.Installed)
	margin := f.Duration("margin", 0, "after-restore, withdraw, move: how far nodes' clocks may be ahead; "+
		"0: a third of hold, at most 10s")
	until := f.String("until", "", "after-restore, move: the `TIME` at which a node last reached the store before the "+
		"restore, or the former store, such as 2026-01-31T12:00:00Z")
	again := f.Bool("again", false, "after-restore: the store was restored once more, so write a new floor")
	sure := f.Bool("sure", false,
		"after-restore, withdraw, move: the clock, the time, the margin, the prefix and the place are right, "+
			"whatever the store and the file say")
	return f.WithConfig(func(ctx context.Context, cfg config.Config, args []string, stdout, stderr io.Writer) error {
		r := workers.Restored{
			Clock: flake.SystemClock(), Hold: cfg.Numbers.Hold,
			Margin: cmp.Or(*margin, workers.DefaultMargin(cfg.Numbers.Hold)),
			Again:  *again, Sure: *sure, Nonce: rand.Uint64(),
		}
		if *until != "" {
			at, err := time.Parse(time.RFC3339, *until)
			if err != nil {
				return cli.UsageError(fmt.Errorf("-until %q: must be a time such as 2026-01-31T12:00:00Z", *until))
			}
			r.Until = uint64(at.UnixMilli())
		}
		return askStore(ctx, cfg, args, r, stdout, stderr)
	})
}

func askStore(
	ctx context.Context, cfg config.Config, args []string, r workers.Restored, stdout, stderr io.Writer,
) (err error) {
	if !cfg.Numbers.On {
		return cli.UsageError(errors.New("the configuration has no table [numbers]"))
	}
	store, _, err := cfg.Numbers.Open(len(args) == 0)
	if err != nil {
		return cli.UsageError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	defer func() { err = cfg.Numbers.Advise(err) }()
	var floor workers.Floor
	switch {
	case len(args) == 0:
		all, err := workers.List(ctx, store, cfg.Numbers.Prefix)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			fmt.Fprintf(stderr, "no number was ever claimed under the prefix %q\n", cfg.Numbers.Prefix)
		}
		return printWorkers(stdout, all)
	case len(args) == 2 && args[0] == "release":
		number, err := strconv.ParseUint(args[1], 10, 48)
		if err != nil {
			return cli.UsageError(errWorkers)
		}
		v, err := workers.Release(ctx, store, cfg.Numbers.Prefix, number, r.Clock())
		if err == nil {
			fmt.Fprintf(stdout, "worker id %d may be claimed from %s on\n",
				number, output.Seconds(max(v.Mark, r.Clock())))
		}
		return err
	case len(args) == 1 && args[0] == "after-restore":
		floor, err = workers.AfterRestore(ctx, store, cfg.Numbers.Prefix, r)
	case len(args) == 2 && args[0] == "move" && strings.Contains(args[1], ":") && !strings.Contains(args[1], " "):
		path := cfg.Flake.TimestampPath
		if path == "" {
			path, _ = cli.DefaultTimestamp()
		}
		r.From, r.Last = args[1], generators.LastPlace(path)
		floor, err = workers.AfterRestore(ctx, store, cfg.Numbers.Prefix, r)
	case len(args) == 1 && args[0] == "withdraw":
		floor, err = workers.Withdraw(ctx, store, cfg.Numbers.Prefix, r)
	default:
		return cli.UsageError(errWorkers)
	}
	if err == nil {
		fmt.Fprintf(stdout, "ids with a new claim begin after %s\n", output.Seconds(floor.Mark))
		if floor.Nonce != r.Nonce && args[0] == "after-restore" {
			fmt.Fprintln(stdout, "this floor was written before and stays; if it is too late: flake workers withdraw; "+
				"if the store has been restored again since: flake workers -again after-restore")
		}
	}
	return err
}

func printWorkers(stdout io.Writer, all []workers.Entry) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "number\tstate\tmark\tclaims\tnode")
	for _, e := range all {
		state := "held"
		if e.Free {
			state = "free"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\n",
			e.Number, state, output.Seconds(e.Mark), e.Generation, escape.Text(e.Name))
	}
	return w.Flush()
}
