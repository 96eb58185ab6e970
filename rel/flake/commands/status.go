// Package commands holds the commands that do not run the node: those that query a running node or the store, and those
// that need neither. Each command has an exported function that adds the command's flags and returns its action.
package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/remote"
)

// StatusMore is the help of [Status].
const StatusMore = `Over the Erlang distribution it takes an id from each generator, to see whether the
generator can make one. Over HTTP it needs no EPMD, and without the token it learns
only whether the node is ready.

The exit status is 0 if all generators can hand out ids, 1 if not or if the node
does not answer, and 2 if flags or the configuration are wrong.`

// Status shows the state of a running node.
func Status(f *cli.Flags) cli.Action {
	f.Identify(cli.Installed)
	choice := remote.NewChoice(f, true)
	asJSON := f.Bool("json", false, "print JSON, as /v1/info does over HTTP")
	return f.WithConfig(func(ctx context.Context, cfg config.Config, _ []string, stdout, stderr io.Writer) error {
		ctx, cancel := context.WithTimeout(ctx, remote.CallTime)
		defer cancel()
		report, err := choice.Report(ctx, cfg, stderr)
		if report != nil {
			err = cmp.Or(show(stdout, *asJSON, "  ", report, textOf(report, time.Now())), err)
		}
		return err
	})
}

// show writes v as JSON, or else its text, escaped so that nothing that a node sends can control the terminal.
func show(w io.Writer, asJSON bool, indent string, v any, text string) error {
	if asJSON {
		return output.PrintJSON(w, v, indent)
	}
	_, err := io.WriteString(w, escape.Lines(text))
	return err
}

// textOf returns a report as text. A dash stands for a missing value.
func textOf(r *idhttp.Report, now time.Time) string {
	if r.Node == "" {
		if r.Ready {
			return "ready\n"
		}
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, flake %s", escape.Text(r.Node), escape.Text(r.Version))
	if len(r.Generators) > 0 {
		fmt.Fprintf(&text, ", up %v", milliseconds(r.Generators[0].Uptime).Round(time.Second))
	}
	if r.Connections != nil {
		fmt.Fprintf(&text, ", connected nodes: %d", *r.Connections)
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\n\ngenerator\tready\tformat\tworker\tfrom\tids\tlast id\tmark\tlead\tstore left")
	for i := range r.Generators {
		fmt.Fprintln(table, strings.Join(rowOf(&r.Generators[i], now), "\t"))
	}
	table.Flush()
	for _, g := range r.Generators {
		if g.WorkerError != "" {
			fmt.Fprintf(&text, "\n%s: the store: %s\n", escape.Text(g.Name), escape.Text(g.WorkerError))
		}
	}
	return text.String()
}

func rowOf(g *idhttp.GeneratorReport, now time.Time) []string {
	mark, lead, left, ready := "-", "-", "-", "yes"
	if g.Mark != 0 {
		mark = output.Seconds(uint64(g.Mark))
		if ahead := time.UnixMilli(g.Mark).Sub(now).Round(100 * time.Millisecond); ahead >= 0 || !g.Ready {
			lead = ahead.String()
		} else {
			lead = "idle" // the mark stays where it is while no ids are requested
		}
	}
	if g.WorkerUntil != 0 {
		left = milliseconds(g.WorkerLeft).Round(time.Second).String()
	}
	if !g.Ready {
		ready = g.Reason
	}
	last := output.Seconds(g.Last)
	if g.IDs == 0 {
		last = "-"
	}
	worker := strconv.FormatUint(g.Worker, 10)
	if k := formats.KindOf(g.Format); k != nil && k.Random() {
		worker = flake.Worker(g.Worker).String()
	}
	return []string{escape.Text(g.Name), escape.Text(ready), escape.Text(g.Format), worker,
		cmp.Or(escape.Text(g.WorkerFrom), "-"),
		strconv.FormatUint(g.IDs, 10), last, mark, lead, left}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
