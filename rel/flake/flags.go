package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/flake-go/flake/config"
)

// flags are the flags of a command: the common ones, which identify the node, and its
// own.
type flags struct {
	*flag.FlagSet
	file, name, cookie *string
}

func newFlags(command string) flags {
	f := flags{FlagSet: flag.NewFlagSet(command, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.file = f.String("config", "", "read the configuration from `FILE`; without it the defaults hold")
	f.name = f.String("name", "", "node name, `name@host`")
	f.cookie = f.String("setcookie", "", "the `cookie` that callers must hold; others can see it in ps, so rather set FLAKE_COOKIE")
	return f
}

const usage = `flake [FLAGS]                   runs the node
flake get [FLAGS]               takes ids from one that runs
flake eval [FLAGS] EXPRESSION   has one that runs call functions
flake workers [FLAGS] [release NUMBER | after-restore]
                                shows who has which number of etcd
`

// load parses the arguments, reads the configuration file they name, and lets the
// environment override it, and the flags override both. It returns the arguments that
// are not flags, at most want of them.
func (f flags) load(args []string, want int, help io.Writer) (cfg config.Config, rest []string, err error) {
	err = f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, usage)
		f.SetOutput(help)
		f.PrintDefaults()
		return cfg, nil, err
	case err == nil && f.NArg() > want:
		err = fmt.Errorf("unexpected argument %q", f.Arg(want))
	}
	if err != nil {
		return cfg, nil, usageError{fmt.Errorf("%w; flags are %s", err, f.names())}
	}
	won, err := config.Environ(os.Environ())
	if err != nil {
		return cfg, nil, usageError{err}
	}
	f.Visit(func(set *flag.Flag) {
		switch set.Name {
		case "name":
			won = append(won, config.Flag{Name: "-name", Key: "node.name", Value: *f.name})
		case "setcookie":
			won = append(won, config.Flag{Name: "-setcookie", Key: "node.cookie", Value: *f.cookie})
		}
	})
	if cfg, err = config.Load(*f.file, won...); err != nil {
		return cfg, nil, usageError{err}
	}
	return cfg, f.Args(), nil
}

// names lists the flags: "-config, -name and -noinput".
func (f flags) names() string {
	var names []string
	f.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
