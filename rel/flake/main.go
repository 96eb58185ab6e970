// Command flake is the id server: a node that Erlang nodes call for ids.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/flake-go/flake/config"
)

const version = "0.1.0"

// Exit codes.
const (
	exitFailure = 1 // it could not start, or not go on
	exitUsage   = 2 // flags or configuration
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := configure(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "flake:", err)
		return exitUsage
	}
	log := slog.New(limit(slog.NewTextHandler(stderr, nil)))
	slog.SetDefault(log) // Ergo writes to package log

	s, err := start(ctx, cfg, stdout, log)
	if err != nil {
		fmt.Fprintln(stderr, "flake:", strings.TrimPrefix(err.Error(), "flake: "))
		return exitFailure
	}
	s.announce(stdout)
	<-ctx.Done()
	log.Info("stopping")
	if err := s.stop(); err != nil {
		log.Error("the last time was not saved: the next start may have to wait", "error", err)
		return exitFailure
	}
	return 0
}

// configure reads the file that the flags name and lets the flags win over it.
func configure(args []string, stderr io.Writer) (config.Config, error) {
	flags := flag.NewFlagSet("flake", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("config", "", "read the configuration from `FILE`; without it the defaults hold")
	name := flags.String("name", "", "node name, `name@host`")
	cookie := flags.String("setcookie", "", "the `cookie` that callers must hold")
	flags.Bool("noinput", false, "do not read standard input")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return config.Config{}, err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return config.Config{}, fmt.Errorf("%w; flags are -config, -name, -setcookie and -noinput", err)
	}
	var won []config.Flag
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "name":
			won = append(won, config.Flag{Name: "-name", Key: "node.name", Value: *name})
		case "setcookie":
			won = append(won, config.Flag{Name: "-setcookie", Key: "node.cookie", Value: *cookie})
		}
	})
	return config.Load(*file, won...)
}
