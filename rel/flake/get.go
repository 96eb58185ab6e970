package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
)

const (
	// callTime bounds a call of a running node, connecting included.
	callTime = 10 * time.Second

	// getMany is how many ids get asks for at a time.
	getMany = 10_000
)

// get takes ids from a running node and prints one a line.
func get(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("flake get")
	n := flags.Int("n", 1, "how many ids, from 1")
	base := flags.Int("base", flake.MaxBase, "the base that they are written in, 2 to 62")
	generator := flags.String("generator", "flake", "ask the generator `NAME`, which the node has by a table [[generator]]")
	url := flags.String("url", "", "ask over HTTP, at a `URL` such as http://127.0.0.1:8465, instead of the Erlang distribution")
	cfg, _, err := flags.load(args, 0, stderr)
	if err != nil {
		return err
	}
	if *n < 1 {
		return usageError{fmt.Errorf("-n %d: want 1 or more", *n)}
	}
	if *base < flake.MinBase || *base > flake.MaxBase {
		return usageError{fmt.Errorf("-base %d: want %d to %d", *base, flake.MinBase, flake.MaxBase)}
	}
	door, err := doorOf(cfg, *url)
	if err != nil {
		return err
	}
	defer door.Close()
	ids := client.NewIDs[flake.ID](door, *generator) // of any format, as only texts are asked for
	for left := *n; left > 0; left -= getMany {
		if err := getSome(ctx, ids, min(left, getMany), *base, stdout); err != nil {
			return err
		}
	}
	return nil
}

func getSome(ctx context.Context, ids *client.IDs[flake.ID], n, base int, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	texts, err := ids.Texts(ctx, n, base)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(stdout)
	for _, id := range texts {
		fmt.Fprintln(w, id)
	}
	return w.Flush()
}

// doorOf gives the way to the node: over HTTP, if there is a URL, with the token
// that the configuration has.
func doorOf(cfg config.Config, url string) (client.Door, error) {
	if url != "" {
		secret, err := token(cfg.HTTP.TokenFile)
		if err != nil {
			return nil, usageError{err}
		}
		h, err := client.NewHTTP(url, client.HTTPOptions{Token: secret})
		if err != nil {
			return nil, usageError{fmt.Errorf("-url: %w", err)}
		}
		return h, nil
	}
	dialer, err := dialerOf(cfg.Node)
	if err != nil {
		return nil, err
	}
	return client.NewNode(cfg.Node.Name, dialer), nil
}
