package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/idserver"
)

const (
	// callTime bounds a call to a running node, connecting included.
	callTime = 10 * time.Second

	// getMany is how many ids get asks for at a time.
	getMany = 10_000
)

// canonical is the base of a format's own text.
const canonical = "canonical"

// get takes ids from a running node and prints one per line.
func get(f *flags) action {
	f.identify()
	n := f.Int("n", 1, "how many ids, from 1")
	in := f.String("base", canonical, "write ids in `BASE`: 2 to 62, or canonical, the format's own text")
	meta := f.Int("meta", noMeta, "the `metabyte` of ids of sno, 0 to 255")
	generator := f.String("generator", "flake", "ask the generator `NAME`, which the node has by a table [[generator]]")
	url := f.String("url", "", "ask over HTTP, at a `URL` such as http://127.0.0.1:8465, instead of the Erlang distribution")
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		cfg, err := f.load()
		if err != nil {
			return err
		}
		base, err := baseOf(*in)
		switch {
		case err != nil:
			return usageError{err}
		case *n < 1:
			return usageError{fmt.Errorf("-n %d: want 1 or more", *n)}
		case *meta < noMeta || *meta > math.MaxUint8:
			return usageError{fmt.Errorf("-meta %d: want 0 to 255", *meta)}
		}
		door, err := doorOf(cfg, *url)
		if err != nil {
			return err
		}
		defer door.Close()
		take := texts(door, *generator, base)
		if *meta != noMeta {
			take = withMeta(door, *generator, base, byte(*meta))
		}
		w := bufio.NewWriter(stdout)
		for left := *n; left > 0 && err == nil; left -= getMany {
			err = printSome(ctx, w, take, min(left, getMany))
		}
		return errors.Join(err, w.Flush())
	}
}

// noMeta is the -meta of ids without one, or with the node's.
const noMeta = -1

func baseOf(text string) (int, error) {
	if text == canonical {
		return client.Canonical, nil
	}
	base, err := strconv.Atoi(text)
	if err != nil || base < flake.MinBase || base > flake.MaxBase {
		return 0, fmt.Errorf("-base %s: want %d to %d, or %s", text, flake.MinBase, flake.MaxBase, canonical)
	}
	return base, nil
}

// textBaseOf is baseOf that takes the names of bases which only ids of 64 bits have.
func textBaseOf(text string) (int, error) {
	if base, ok := idserver.BaseOf(text); ok {
		return base, nil
	}
	return baseOf(text)
}

// taker takes n ids as texts.
type taker func(ctx context.Context, n int) ([]string, error)

func texts(door client.Door, generator string, base int) taker {
	ids := client.NewIDs[flake.ID](door, generator) // any format will do: only texts are asked for
	return func(ctx context.Context, n int) ([]string, error) { return ids.Texts(ctx, n, base) }
}

// withMeta takes ids of sno and puts a metabyte into them.
func withMeta(door client.Door, generator string, base int, meta byte) taker {
	ids := client.NewIDs[sno.ID](door, generator)
	return func(ctx context.Context, n int) ([]string, error) {
		some := make([]sno.ID, n)
		if _, err := ids.NextN(ctx, some); err != nil {
			return nil, err
		}
		texts := make([]string, n)
		for i, id := range some {
			if id = id.WithMeta(meta); base == client.Canonical {
				texts[i] = id.String()
			} else {
				texts[i], _ = id.Text(base) // baseOf has checked base
			}
		}
		return texts, nil
	}
}

func printSome(ctx context.Context, w io.Writer, take taker, n int) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	ids, err := take(ctx, n)
	for _, id := range ids {
		fmt.Fprintln(w, id)
	}
	return err
}

// doorOf returns the way to the node: over HTTP if there is a URL, with the configured
// token.
func doorOf(cfg config.Config, url string) (client.Door, error) {
	if url == "" {
		return nodeOf(cfg.Node)
	}
	w, err := webOf(cfg.HTTP, url)
	if err != nil {
		return nil, err
	}
	return w.door, nil
}
