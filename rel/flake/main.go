// Command flake is the id server: a node that Erlang nodes call for ids. It also calls
// a running one: flake get, flake eval.
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
	exitFailure = 1 // it could not start or continue
	exitUsage   = 2 // flags or configuration
)

// A usageError is wrong flags, arguments or configuration.
type usageError struct{ error }

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	ends = slices.DeleteFunc(ends, signal.Ignored) // as nohup does
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, ends...)
	os.Exit(run(untilSignal(signals, os.Exit), os.Args[1:], os.Stdout, os.Stderr))
}

// untilSignal returns a context that ends with the first signal. The second ends the
// process at once, even if nobody has noticed the first yet, which
// [signal.NotifyContext] would not do.
func untilSignal(signals <-chan os.Signal, exit func(code int)) context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		end(fmt.Errorf("%v signal received", <-signals))
		second := <-signals
		exit(128 + int(second.(syscall.Signal))) // as a shell reports it
	}()
	return ctx
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := serve
	if len(args) > 0 {
		switch args[0] {
		case "get":
			command, args = get, args[1:]
		case "eval":
			command, args = eval, args[1:]
		case "workers":
			command, args = listWorkers, args[1:]
		}
	}
	err := command(ctx, args, stdout, stderr)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		return complain(stderr, err, exitUsage)
	}
	return complain(stderr, err, exitFailure)
}

// complain prints why the process ends, which it does even if nobody reads that.
func complain(stderr io.Writer, err error, code int) int {
	out := newOutput(stderr)
	fmt.Fprintln(out, "flake:", strings.TrimPrefix(err.Error(), "flake: "))
	out.Close()
	return code
}
