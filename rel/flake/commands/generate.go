package commands

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/setup"
)

// GenerateMore is the help of [Generate].
const GenerateMore = `It needs no node. The flags for the number and the layout are the keys of a
[[generator]] table in the configuration.

With -mark, ids never repeat, even if the clock is set back or the machine loses
power: FILE is locked, and holds a time ahead of all ids. If no worker id is given, a
random one is chosen and saved in that file. Use one file for each number: always the
same file, on one machine, and never a node's. A node with the same number on this
machine is detected, unless its number is assigned.

Without -mark, nothing is saved, and only flake, uuidv7 and ulid ids can be made, with
a new random worker id each time. Ids that two runs make in the same millisecond can be
equal only if 47 random bits are equal. Numbers of 10 or 16 bits, and any chosen number,
are refused, because ids could repeat.`

// Generate makes ids without a node and prints one per line.
func Generate(f *cli.Flags) cli.Action {
	addKeys(f, true)
	n := f.Int("n", 1, "the `NUMBER` of ids, at least 1")
	in := f.String("base", canonical, writeBase)
	mark := f.String("mark", "", "record in `FILE` how far the ids have gone")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		base, err := textBaseOf(*in)
		switch {
		case err != nil:
			return cli.UsageError(err)
		case *n < 1:
			return cli.UsageError(fmt.Errorf("-n %d: must be 1 or more", *n))
		}
		g, err := generatorOf(givenKeys(f), *mark)
		if err != nil {
			return cli.UsageError(err)
		}
		if !g.Layout().HasBase(base) {
			return cli.UsageError(fmt.Errorf("-base %s: %s ids have no text form in this base", *in, g.Format))
		}
		ids, end, err := setup.OpenLocal(ctx, g, *mark, slog.New(slog.NewTextHandler(stderr, nil)))
		if err != nil {
			return err
		}
		// If the reader closes the pipe, SIGPIPE must not end the process before the exact mark is saved.
		broken := make(chan os.Signal, 1)
		signal.Notify(broken, syscall.SIGPIPE)
		err = printIDs(ctx, stdout, ids, *n, base, uint8(g.Options["meta"]))
		err = errors.Join(err, end())
		signal.Stop(broken)
		if errors.Is(err, syscall.EPIPE) {
			stdout.Write([]byte("\n")) // this raises SIGPIPE, which now ends the process as usual
		}
		return err
	}
}

// generatorOf returns the generator that the flags describe. If mark is empty, the worker must be random.
func generatorOf(given []config.Flag, mark string) (config.Generator, error) {
	if !slices.ContainsFunc(given, func(f config.Flag) bool { return f.Key == "format" }) {
		given = append(given, config.Flag{Name: "-format", Key: "format", Value: "flake"})
	}
	g, err := config.LoadGenerator(true, given...)
	if err == nil && mark == "" && !g.Random {
		err = errors.New("-mark: must be a file that records how far the ids have gone; " +
			"without it, ids with a chosen number could repeat")
	}
	return g, err
}

func printIDs(ctx context.Context, stdout io.Writer, ids formats.Source, n, base int, meta uint8) error {
	const batch = 1000 // how many ids are reserved at a time
	w := bufio.NewWriterSize(stdout, 64<<10)
	var line []byte
	for n > 0 {
		if ctx.Err() != nil { // Reserve checks it only when it waits
			return errors.Join(context.Cause(ctx), w.Flush())
		}
		run, err := ids.Reserve(ctx, min(n, batch), meta)
		for i := range run.Count {
			line = append(ids.Format().Append(line[:0], run.At(i), base), '\n')
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

// addKeys adds flags for the keys of a generator: for all keys, or only for those of the layout.
func addKeys(f *cli.Flags, all bool) {
	f.String("format", "", "the format of the ids, `"+strings.Join(formats.Names(), "|")+"`")
	for _, k := range formats.Keys() {
		if all || k.Layout {
			f.String(strings.ReplaceAll(k.Name, "_", "-"), "", k.Does+"; of "+formats.WithKey(k.Name))
		}
	}
}

// givenKeys returns the flags from [addKeys] that were given.
func givenKeys(f *cli.Flags) (given []config.Flag) {
	f.Visit(func(set *flag.Flag) {
		key := strings.ReplaceAll(set.Name, "-", "_")
		isKey := func(k *formats.Key) bool { return k.Name == key }
		if key == "format" || slices.ContainsFunc(formats.Keys(), isKey) {
			given = append(given, config.Flag{Name: "-" + set.Name, Key: key, Value: set.Value.String()})
		}
	})
	return given
}
