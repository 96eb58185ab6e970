package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake/generators"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/setup"
)

// CheckMore is the help of [Check].
const CheckMore = `It rehearses startup in memory, with the code that the node runs. It takes no lock and
writes nothing, so the node may be running: it then shows what startup would do if the
node crashed now. Run it as the node's user, on the node's machine. It does not see
whether another process has the lock, or whether the store accepts writes.

With -json, start is at_once, waits (for wait ms; 0: until the problem is fixed) or
refuses. Each finding has a code, and says what to do.

These codes mean that something is wrong. The node refuses to start: file, generator,
clock_running_backwards, clock_advanced, number_by_hand. It is assigned no number
yet: store, store_refuses, clock_off, none_free, not_claimed, elsewhere, start_timeout.
The store has lost marks: store_behind. It was restored or copied, or its floor was deleted:
restored. Another process continues with this file: copy. The node starts and no id
repeats, but the disk may be failing: file_damaged.

These are only notes: no_file, worker_drawn, number_taken, number_past, floor,
number_not_wanted.

The exit status is 0 if nothing is wrong, 1 if something is, and 2 if flags or the
configuration are wrong.`

// Check shows whether the file of marks, the store and the configuration agree, and what would
// happen at startup.
func Check(f *cli.Flags) cli.Action {
	f.Identify(cli.Installed)
	asJSON := f.Bool("json", false, "print the report as JSON")
	return f.WithConfig(func(ctx context.Context, cfg config.Config, _ []string, stdout, _ io.Writer) error {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		report, err := setup.Rehearse(ctx, cfg)
		if err != nil {
			return cli.UsageError(err)
		}
		err = show(stdout, *asJSON, "  ", report, textOfCheck(report))
		if err == nil && !report.Fits {
			err = errors.New("something is wrong: see the findings")
		}
		return err
	})
}

// textOfCheck returns a report as text. A dash stands for a missing value.
func textOfCheck(r generators.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, at %s\n", escape.Text(r.File), output.Seconds(r.Clock))
	if len(r.Generators) > 0 {
		fmt.Fprintln(&text)
		printGenerators(&text, r)
	}
	if n := r.Number; n != nil {
		fmt.Fprintf(&text, "\nstore, cluster %s, prefix %s\n",
			cmp.Or(escape.Text(n.Cluster), "-"), escape.Text(n.Prefix))
		if k := n.Kept; k != nil {
			fmt.Fprintf(&text, "  the file's number  %d; mark %s there, %s in the store, of %s\n",
				k.Number, markTime(k.Mark), markTime(k.StoreMark), cmp.Or(escape.Text(k.StoreName), "-"))
		}
		fmt.Fprintf(&text, "  floor              %s\n", markTime(n.Floor))
		if c := n.Claim; c != nil {
			how := "claims it"
			switch {
			case c.Resumed:
				how = "continues with it"
			case c.Random:
				how = "claims it, or another that is free"
			}
			fmt.Fprintf(&text, "  at startup         %d: the node %s; ids after %s\n", c.Number, how, markTime(c.After))
		}
	}
	fmt.Fprintf(&text, "\nstarting now: %s\n", showStart(r))
	said := make(map[generators.Code]bool)
	for _, f := range r.Findings {
		kind := "note"
		if f.Wrong {
			kind = "WRONG"
		}
		if f.Generator != "" {
			kind += ", generator " + f.Generator
		}
		if said[f.Code] && f.Code != generators.CodeGenerator { // of other generators, which have the same cause
			f.Text = "as above"
		}
		said[f.Code] = true
		fmt.Fprintf(&text, "%s: %s: %s\n", kind, f.Code, f.Text)
	}
	return text.String()
}

func showStart(r generators.Report) string {
	switch {
	case r.Start == generators.StartRefuses:
		return "refused"
	case r.Start == generators.StartsAtOnce:
		return "does not wait"
	case r.Wait == 0:
		return "waits until the problem is fixed"
	}
	return fmt.Sprintf("waits for %v", time.Duration(r.Wait)*time.Millisecond)
}

func markTime(milli uint64) string {
	if milli == 0 {
		return "-"
	}
	return output.Seconds(milli)
}

func printGenerators(w io.Writer, r generators.Report) {
	known := r.Start == generators.StartsAtOnce || r.Start == generators.StartWaits && r.Wait > 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "generator\tmark\tlatest of any run\tbounded by\tstartup waits for")
	for _, g := range r.Generators {
		bound, wait := "the file", "-"
		if g.Numbered {
			bound = "the file, and the store"
		}
		switch {
		case !g.Configured:
			bound, wait = "-", "- (not configured)"
		case known:
			wait = milliseconds(g.Wait).String()
		}
		name := escape.Text(cmp.Or(g.Name, "flake"))
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", name, markTime(g.Mark), markTime(g.Latest), bound, wait)
	}
	table.Flush()
}
