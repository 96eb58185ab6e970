package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/workers"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/credentials"
	"github.com/flake-go/flake/rel/flake/output"
)

// answerOfEtcd is how long all of a command waits for etcd.
const answerOfEtcd = 5 * time.Second

var errWorkers = errors.New("flake workers: no argument wanted, release NUMBER, after-restore, or withdraw")

// Workers shows who has which number of etcd, releases one, or tells etcd that it
// was restored, or that it was not.
func Workers(f *cli.Flags) cli.Action {
	f.Identify()
	margin := f.Duration("margin", 0, "after-restore, withdraw: by how much clocks of nodes may be ahead; 0: a third of hold, 10s at most")
	until := f.String("until", "", "after-restore: the `TIME` at which a node last reached etcd as it was, such as 2026-01-31T12:00:00Z")
	again := f.Bool("again", false, "after-restore: etcd was restored once more, so a new floor is wanted")
	sure := f.Bool("sure", false, "after-restore, withdraw: the clock here is right, whatever etcd's and the marks say")
	return f.WithConfig(func(ctx context.Context, cfg config.Config, args []string, stdout, _ io.Writer) error {
		r := workers.Restored{
			Clock: flake.SystemClock(), Hold: cfg.Etcd.Hold, Margin: cmp.Or(*margin, workers.DefaultMargin(cfg.Etcd.Hold)),
			Again: *again, Sure: *sure, Nonce: rand.Uint64(),
		}
		if *until != "" {
			at, err := time.Parse(time.RFC3339, *until)
			if err != nil {
				return cli.UsageError(fmt.Errorf("-until %q: a time such as 2026-01-31T12:00:00Z wanted", *until))
			}
			r.Until = uint64(at.UnixMilli())
		}
		return workersOf(ctx, cfg, args, r, stdout)
	})
}

func workersOf(ctx context.Context, cfg config.Config, args []string, r workers.Restored, stdout io.Writer) error {
	if !cfg.Etcd.On {
		return cli.UsageError(errors.New("the configuration has no table [etcd]"))
	}
	store, _, err := credentials.OpenEtcd(cfg.Etcd)
	if err != nil {
		return cli.UsageError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerOfEtcd)
	defer cancel()
	switch {
	case len(args) == 0:
		return credentials.Advise(showWorkers(ctx, store, cfg.Etcd.Prefix, stdout), cfg.Etcd)
	case len(args) == 2 && args[0] == "release":
		number, err := strconv.ParseUint(args[1], 10, 48)
		if err != nil {
			return cli.UsageError(errWorkers)
		}
		v, err := workers.Release(ctx, store, cfg.Etcd.Prefix, number, r.Clock())
		if err == nil {
			fmt.Fprintf(stdout, "worker id %d may be claimed from %s on\n",
				number, output.Seconds(max(v.Mark, r.Clock())))
		}
		return credentials.Advise(err, cfg.Etcd)
	case len(args) == 1 && args[0] == "after-restore":
		return putFloor(workers.AfterRestore, ctx, store, cfg.Etcd, r, stdout)
	case len(args) == 1 && args[0] == "withdraw":
		return putFloor(workers.Withdraw, ctx, store, cfg.Etcd, r, stdout)
	}
	return cli.UsageError(errWorkers)
}

func putFloor(put func(context.Context, workers.Store, string, workers.Restored) (workers.Floor, error),
	ctx context.Context, s workers.Store, cfg config.Etcd, r workers.Restored, stdout io.Writer) error {
	floor, err := put(ctx, s, cfg.Prefix, r)
	if err == nil {
		fmt.Fprintf(stdout, "ids with a new claim begin after %s\n", output.Seconds(floor.Mark))
	}
	return credentials.Advise(err, cfg)
}

func showWorkers(ctx context.Context, s workers.Store, prefix string, stdout io.Writer) error {
	all, err := workers.List(ctx, s, prefix)
	if err != nil {
		return err
	}
	return printWorkers(stdout, all)
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
