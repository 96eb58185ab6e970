package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/remote"
)

// getBatch is how many ids Get requests in one call.
const getBatch = 10_000

// canonical is the value of -base for the text form that a format itself defines.
const canonical = "canonical"

// Get gets ids from a running node and prints one per line.
func Get(f *cli.Flags) cli.Action {
	f.Identify(cli.Installed)
	n := f.Int("n", 1, "the `NUMBER` of ids, at least 1")
	in := f.String("base", canonical, writeBase)
	meta := f.Int("meta", 0, "the metabyte of sno ids, a `NUMBER` from 0 to 255; without it, the generator's")
	generator := f.String("generator", "flake", "ask the generator `NAME`, from a [[generator]] table of the node")
	choice := remote.NewChoice(f, true)
	return f.WithConfig(func(ctx context.Context, cfg config.Config, _ []string, stdout, _ io.Writer) error {
		base, err := textBaseOf(*in)
		withMeta := f.Given("meta") != ""
		snos := formats.KindOf("sno").Format(nil)
		switch {
		case err != nil:
			return cli.UsageError(err)
		case *n < 1:
			return cli.UsageError(fmt.Errorf("-n %d: must be 1 or more", *n))
		case *meta < 0 || *meta > math.MaxUint8:
			return cli.UsageError(fmt.Errorf("-meta %d: must be 0 to 255", *meta))
		case withMeta && !snos.HasBase(base):
			return cli.UsageError(fmt.Errorf("-base %s: -meta is for sno, whose ids have no text form in this base", *in))
		}
		door, err := choice.Door(cfg)
		if err != nil {
			return err
		}
		defer door.Close()
		ids := client.NewIDs[flake.ID](door, *generator) // any format will do, because only texts are requested
		take := func(ctx context.Context, n int) ([]string, error) { return ids.Texts(ctx, n, base) }
		switch {
		case withMeta:
			take = each(door, *generator, func(id sno.ID) string {
				id = id.WithMeta(byte(*meta))
				return string(snos.Append(nil, formats.NumberOf(string(id[:])), base))
			})
		case !formats.KindOf("flake").Format(nil).HasBase(base):
			format := formats.SnowflakeFormat(snowflake.Twitter) // any 64-bit layout will do
			take = each(door, *generator, func(id snowflake.ID) string {
				return string(format.Append(nil, formats.Number{Lo: uint64(id)}, base))
			})
		}
		w := bufio.NewWriter(stdout)
		for left := *n; left > 0 && err == nil; left -= getBatch {
			err = printSome(ctx, w, take, min(left, getBatch))
		}
		return errors.Join(err, w.Flush())
	})
}

// namedBases lists, for help and for errors, the bases that have names instead of numbers.
const namedBases = "crockford; for 128 bits uuid; for 64 bits base32, base36, base58 or base64"

// writeBase is the help for -base in commands that write ids.
const writeBase = "write ids in `BASE`: 2 to 62; canonical, the format's own text; " + namedBases

func baseOf(text string) (int, error) {
	if text == canonical {
		return client.Canonical, nil
	}
	base, err := strconv.Atoi(text)
	if err != nil || base < flake.MinBase || base > flake.MaxBase {
		return 0, fmt.Errorf("-base %s: must be %d to %d, or %s", text, flake.MinBase, flake.MaxBase, canonical)
	}
	return base, nil
}

// textBaseOf is like baseOf, but also accepts the names of bases that not all formats have.
func textBaseOf(text string) (int, error) {
	if base, ok := formats.BaseOf(text); ok {
		return base, nil
	}
	base, err := baseOf(text)
	if err != nil {
		err = fmt.Errorf("%w, or %s", err, namedBases)
	}
	return base, err
}

type taker func(ctx context.Context, n int) ([]string, error)

// each returns a taker that gets ids and turns each into text.
func each[ID client.Format](door client.Door, generator string, text func(id ID) string) taker {
	ids := client.NewIDs[ID](door, generator)
	return func(ctx context.Context, n int) ([]string, error) {
		some := make([]ID, n)
		if _, err := ids.NextN(ctx, some); err != nil {
			return nil, err
		}
		texts := make([]string, n)
		for i, id := range some {
			texts[i] = text(id)
		}
		return texts, nil
	}
}

func printSome(ctx context.Context, w io.Writer, take taker, n int) error {
	ctx, cancel := context.WithTimeout(ctx, remote.CallTime)
	defer cancel()
	ids, err := take(ctx, n)
	for _, id := range ids {
		fmt.Fprintln(w, id)
	}
	return err
}
