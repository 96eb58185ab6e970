package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// callTime bounds a call of a running node, connecting included.
const callTime = 10 * time.Second

// get takes ids from a running node and prints one a line.
func get(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("flake get")
	n := flags.Int("n", 1, "how many ids, from 1")
	base := flags.Int("base", flake.MaxBase, "the base that they are written in, 2 to 62")
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
	c, err := dialNode(ctx, cfg.Node)
	if err != nil {
		return err
	}
	defer c.Close()
	for range *n {
		id, err := getOne(ctx, c, *base)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(stdout, id); err != nil {
			return err
		}
	}
	return nil
}

func getOne(ctx context.Context, c *client.Conn, base int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	reply, err := c.Call(ctx, "flake", etf.Tuple{etf.Atom("get"), int64(base)})
	if err != nil {
		return "", err
	}
	if t, ok := reply.(etf.Tuple); ok && len(t) == 2 && t[0] == etf.Atom("ok") {
		if id, ok := t[1].(etf.String); ok {
			return string(id), nil
		}
	}
	return "", fmt.Errorf("the node answered %s", etf.Format(nil, reply))
}
