package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// showHelp shows the table of commands, or one of them.
func showHelp(*flags) action {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		c, err := find(name)
		if err != nil {
			return err
		}
		return c.help(stdout)
	}
}

// help shows how a command is called, and its flags; of the node also all commands.
func (c subcommand) help(w io.Writer) error {
	var text strings.Builder
	if c.name == "" {
		table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
		for _, c := range commands() {
			fmt.Fprintf(table, "%s\t%s\n", c.usage(), c.does)
		}
		table.Flush()
		fmt.Fprint(&text, "\nFor the flags of a command: flake help COMMAND. Those of flake itself:\n\n")
	} else {
		fmt.Fprintf(&text, "%s\n\nflake %s %s.\n", c.usage(), c.name, c.does)
	}
	f := newFlags()
	c.set(f)
	if c.name != "" && f.any() {
		fmt.Fprint(&text, "\nFlags:\n\n")
	}
	f.SetOutput(&text)
	f.PrintDefaults()
	_, err := io.WriteString(w, text.String())
	return err
}

// usage is how a command is called.
func (c subcommand) usage() string {
	words := []string{"flake", c.name, "[FLAGS]", c.args}
	f := newFlags()
	if c.set(f); !f.any() {
		words[2] = ""
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func (f *flags) any() (any bool) {
	f.VisitAll(func(*flag.Flag) { any = true })
	return any
}
