package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node/console"
	"github.com/flake-go/flake/node/etf"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/remote"
)

// Eval evaluates expressions. A running node calls the functions in them.
func Eval(f *cli.Flags) cli.Action {
	f.Identify(cli.Installed)
	return f.WithConfig(func(ctx context.Context, cfg config.Config, args []string, stdout, stderr io.Writer) error {
		if len(args) == 0 {
			return cli.UsageError(errors.New("no expression: for example, flake eval 'flake_harness:generate(1).'"))
		}
		remote.SayDigest(stderr, cfg.Node)
		node, err := remote.NewNode(cfg.Node)
		if err != nil {
			return err
		}
		defer node.Close()
		text := strings.TrimSuffix(strings.TrimSpace(args[0]), ".") + "."
		call := func(module, function etf.Atom, args []etf.Term) (etf.Term, error) {
			ctx, cancel := context.WithTimeout(ctx, remote.CallTime)
			defer cancel()
			result, err := node.Apply(ctx, module, function, args)
			if err != nil {
				return nil, fmt.Errorf("the node did not answer: %w", err)
			}
			if reason, failed := remote.BadRPC(result); failed {
				return nil, &console.Exception{Class: "error", Reason: reason}
			}
			return result, nil
		}
		value, err := console.Eval(ctx, call, text)
		if err == nil {
			_, err = stdout.Write(append(value, '\n'))
		}
		return err
	})
}
