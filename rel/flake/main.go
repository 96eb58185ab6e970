// Command flake is the id server: a node that Erlang nodes call for ids. It is
// also the caller of one that runs: flake get, flake eval.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const version = "0.1.0"

// Exit codes.
const (
	exitFailure = 1 // it could not start, or not go on
	exitUsage   = 2 // flags or configuration
)

// A usageError is one of flags, arguments or configuration.
type usageError struct{ error }

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	ends = slices.DeleteFunc(ends, signal.Ignored) // as nohup has it
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second one ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := serve
	if len(args) > 0 {
		switch args[0] {
		case "get":
			command, args = get, args[1:]
		case "eval":
			command, args = eval, args[1:]
		}
	}
	err := command(ctx, args, stdout, stderr)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "flake:", err)
		return exitUsage
	}
	fmt.Fprintln(stderr, "flake:", strings.TrimPrefix(err.Error(), "flake: "))
	return exitFailure
}
