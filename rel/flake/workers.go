package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/workers"
)

// defaultMargin is by how much clocks of nodes may be ahead after a restore.
const defaultMargin = 10 * time.Second

var errWorkers = errors.New("flake workers: no argument wanted, release NUMBER, or after-restore")

// listWorkers shows who has which number of etcd, releases one, or tells etcd that it
// was restored.
func listWorkers(f *flags) action {
	f.identify()
	margin := f.Duration("margin", defaultMargin, "after-restore: by how much clocks of nodes may be ahead")
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		cfg, err := f.load()
		if err != nil {
			return err
		}
		return workersOf(ctx, cfg, args, *margin, stdout)
	}
}

func workersOf(ctx context.Context, cfg config.Config, args []string, margin time.Duration, stdout io.Writer) error {
	if !cfg.Etcd.On {
		return usageError{errors.New("the configuration has no table [etcd]")}
	}
	store, _, err := openEtcd(cfg.Etcd)
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, giveBack)
	defer cancel()
	switch {
	case len(args) == 0:
		return advise(showWorkers(ctx, store, cfg.Etcd.Prefix, stdout), cfg.Etcd)
	case len(args) == 2 && args[0] == "release":
		number, err := strconv.ParseUint(args[1], 10, 48)
		if err != nil {
			return usageError{errWorkers}
		}
		return advise(workers.Release(ctx, store, cfg.Etcd.Prefix, number), cfg.Etcd)
	case len(args) == 1 && args[0] == "after-restore":
		floor, err := workers.AfterRestore(ctx, store, cfg.Etcd.Prefix, cfg.Etcd.Hold, margin, flake.SystemClock()(), uint64(time.Now().UnixNano()))
		if err == nil {
			fmt.Fprintf(stdout, "ids with a new claim begin after %s\n", showMilli(floor.Mark))
		}
		return advise(err, cfg.Etcd)
	}
	return usageError{errWorkers}
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
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\n", e.Number, state, showMilli(e.Mark), e.Generation, printable(e.Name))
	}
	return w.Flush()
}

func showMilli(milli uint64) string { return time.UnixMilli(int64(milli)).UTC().Format(time.RFC3339) }
