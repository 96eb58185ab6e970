package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/host"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
	"github.com/flake-go/flake/idserver"
)

const generateMore = `No node is asked, and none is needed. The flags of the number and the layout are
those of a table [[generator]] of the configuration.

With -mark, ids never come twice: FILE is locked, and keeps a time ahead of all ids,
also when the clock is set back or the machine loses power. A worker id that is
not given is made up, and kept in that file. Give each number one file for good, not a
node's, on one machine; a node of the same number on this machine is noticed, unless
it has that from etcd.

Without -mark nothing is kept, and only ids of flake, uuidv7 and ulid can be had, with
a worker id that is made up each time. Of two runs, ids made in one millisecond can be
the same only if 47 random bits are. Numbers of 10 or 16 bits, and any that is chosen,
could come twice, and are refused.`

// generateIDs makes ids without a node, one a line.
func generateIDs(f *flags) action {
	f.keys(true)
	n := f.Int("n", 1, "the `NUMBER` of ids, from 1")
	in := f.String("base", canonical, writeBase)
	mark := f.String("mark", "", "keep in `FILE` how far the ids went")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		base, err := textBaseOf(*in)
		switch {
		case err != nil:
			return usageError{err}
		case *n < 1:
			return usageError{fmt.Errorf("-n %d: want 1 or more", *n)}
		}
		g, err := generatorOf(f.given(), *mark)
		if err != nil {
			return usageError{err}
		}
		if !idserver.HasBase(formatOf(g), base) {
			return usageError{fmt.Errorf("-base %s: ids of %s have no such text", *in, g.Format)}
		}
		ids, end, err := openLocal(ctx, g, *mark, slog.New(slog.NewTextHandler(stderr, nil)))
		if err != nil {
			return err
		}
		// A reader that is gone must not end the process before the mark is exact.
		broken := make(chan os.Signal, 1)
		signal.Notify(broken, syscall.SIGPIPE)
		err = printIDs(ctx, stdout, ids, *n, base, uint8(value(g.Meta)))
		err = errors.Join(err, end())
		signal.Stop(broken)
		if errors.Is(err, syscall.EPIPE) {
			stdout.Write([]byte("\n")) // which now ends the process, as it does others
		}
		return err
	}
}

// generatorOf returns the generator of flags. Without a mark its worker has to be made up.
func generatorOf(given []config.Flag, mark string) (config.Generator, error) {
	if !slices.ContainsFunc(given, func(f config.Flag) bool { return f.Key == "format" }) {
		given = append(given, config.Flag{Name: "-format", Key: "format", Value: config.FormatFlake})
	}
	g, err := config.LoadGenerator(true, given...)
	if err == nil && mark == "" && !g.Random {
		err = errNoMark
	}
	return g, err
}

var errNoMark = errors.New("-mark: a file wanted that keeps how far the ids went, as those of a number that is not made up could come twice without it")

// allDowntime is any time between two runs.
const allDowntime = math.MaxInt64

// openLocal returns what makes ids of a generator, until end. The mark is in the file at
// path; without a path nothing is kept.
func openLocal(ctx context.Context, g config.Generator, path string, log *slog.Logger) (ids idserver.Source, end func() error, err error) {
	if path == "" {
		return openMadeUp(g.Format, flake.RandomWorker())
	}
	h, err := host.Open[*opened](host.Config{Path: path, Log: log})
	if err != nil {
		return nil, nil, err
	}
	gs := generators{host: h, options: flake.Options{AllowableDowntime: allDowntime, Logger: log}}
	if names := h.Marks().Names(); len(names) > 0 && names[len(names)-1] != "" {
		err := fmt.Errorf("-mark %s: a node keeps the marks of its generators in it, such as %s: give it a file of its own", path, names[len(names)-1])
		return nil, nil, errors.Join(err, gs.stop())
	}
	kept := func(mark string) (flake.Worker, string, error) { return keptWorker(h.Marks(), mark, path, log) }
	g.Name = "" // so has its mark no name
	opened, err := gs.open(ctx, g.Name, false, planOf(g, kept))
	if err != nil {
		return nil, nil, errors.Join(err, gs.stop())
	}
	gs.list = append(gs.list, opened)
	return opened.server.IDs, gs.stop, nil
}

// openMadeUp returns what makes ids of a worker that is made up, and keeps nothing.
func openMadeUp(format string, w flake.Worker) (ids idserver.Source, end func() error, err error) {
	switch format {
	case config.FormatUUIDv7:
		ids, err := uuidv7.NewGenerator(w, uuidv7.Options{})
		return idserver.UUIDv7(ids), ids.Close, err
	case config.FormatULID:
		ids, err := ulid.NewGenerator(w, ulid.Options{})
		return idserver.ULID(ids), ids.Close, err
	}
	own, err := flake.NewGenerator(w, flake.Options{})
	return idserver.Flake(own), own.Close, err
}

// generateMany is how many ids are reserved at a time.
const generateMany = 1000

func printIDs(ctx context.Context, stdout io.Writer, ids idserver.Source, n, base int, meta uint8) error {
	w := bufio.NewWriterSize(stdout, 64<<10)
	var line []byte
	for n > 0 {
		if ctx.Err() != nil { // which Reserve looks at only where it waits
			return errors.Join(context.Cause(ctx), w.Flush())
		}
		run, err := ids.Reserve(ctx, min(n, generateMany), meta)
		for i := range run.Count {
			line = append(idserver.AppendID(line[:0], ids.Format(), run.At(i), base), '\n')
			if _, fault := w.Write(line); fault != nil {
				return fault
			}
		}
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		n -= run.Count
	}
	return w.Flush()
}
