package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/node/etf"
)

const statusMore = `Over the Erlang distribution it takes an id of each generator to see whether it
can. Over HTTP it needs no EPMD, and without the token it learns only whether
the node is ready.

The exit status is 0 if all generators can hand out ids, 1 if not or if the node
does not answer, and 2 if flags or the configuration are wrong.`

// status shows how a running node is.
func status(f *flags) action {
	f.identify()
	way := f.way(preferHTTP)
	asJSON := f.Bool("json", false, "print it as JSON, as /v1/info of HTTP does")
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		cfg, err := f.load()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		report, err := way.report(ctx, cfg, stderr)
		if report != nil {
			err = cmp.Or(printReport(stdout, report, *asJSON), err)
		}
		return err
	}
}

// report returns what a node tells of itself, with an error if it is not ready. Without
// a report it did not even tell that.
func (w *way) report(ctx context.Context, cfg config.Config, stderr io.Writer) (*idhttp.Report, error) {
	overHTTP, err := w.overHTTP(fixedHTTP(cfg.HTTP))
	if err != nil {
		return nil, err
	}
	if !overHTTP {
		return reportOfNode(ctx, cfg)
	}
	web, err := webOf(cfg.HTTP, *w.url)
	if err != nil {
		return nil, err
	}
	defer web.door.Close()
	return web.report(ctx, stderr)
}

// report asks first whether the node is ready, which it tells also when it is busy, or
// the token is not known.
func (w *web) report(ctx context.Context, stderr io.Writer) (*idhttp.Report, error) {
	_, err := w.get(ctx, "readyz")
	var not refused
	if errors.As(err, &not) && not.status == http.StatusServiceUnavailable {
		err = fmt.Errorf("not ready: %s", not.detail)
	} else if err != nil {
		return nil, err
	}
	r := &idhttp.Report{Ready: err == nil}
	body, untold := w.get(ctx, "v1/info")
	if untold == nil {
		untold = json.Unmarshal(body, r)
	}
	if untold != nil {
		fmt.Fprintf(stderr, "flake: more than whether it is ready is not told: %s\n", escape.Text(untold.Error()))
	}
	return r, err
}

func printReport(w io.Writer, r *idhttp.Report, asJSON bool) error {
	if asJSON {
		return printJSON(w, r, "  ")
	}
	_, err := io.WriteString(w, textOf(r, time.Now()))
	return err
}

// textOf is a report for people. A dash is what there is not.
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
	fmt.Fprintln(table, "\n\ngenerator\tready\tformat\tworker\tfrom\tids\tlast id\tmark\tlead\tetcd left")
	for i := range r.Generators {
		fmt.Fprintln(table, strings.Join(rowOf(&r.Generators[i], now), "\t"))
	}
	table.Flush()
	for _, g := range r.Generators {
		if g.WorkerError != "" {
			fmt.Fprintf(&text, "\n%s: etcd: %s\n", escape.Text(g.Name), escape.Text(g.WorkerError))
		}
	}
	return escape.Lines(text.String())
}

// printJSON writes v, with escapes for what is not printable.
func printJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	var b []byte
	for _, r := range text.String() {
		if r == '\n' || unicode.IsPrint(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	_, err := w.Write(b)
	return err
}

func rowOf(g *idhttp.GeneratorReport, now time.Time) []string {
	mark, lead, left, ready := "-", "-", "-", "yes"
	if g.Mark != 0 {
		mark, lead = showMilli(uint64(g.Mark)), time.UnixMilli(g.Mark).Sub(now).Round(100*time.Millisecond).String()
	}
	if g.WorkerUntil != 0 {
		left = milliseconds(g.WorkerLeft).Round(time.Second).String()
	}
	if !g.Ready {
		ready = g.Reason
	}
	last := showMilli(g.Last)
	if g.IDs == 0 {
		last = "-"
	}
	worker := strconv.FormatUint(g.Worker, 10)
	if slices.Contains(config.WorkerFormats, g.Format) {
		worker = flake.Worker(g.Worker).String()
	}
	return []string{escape.Text(g.Name), escape.Text(ready), escape.Text(g.Format), worker, cmp.Or(escape.Text(g.WorkerFrom), "-"),
		strconv.FormatUint(g.IDs, 10), last, mark, lead, left}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// reportOfNode asks over the Erlang distribution.
func reportOfNode(ctx context.Context, cfg config.Config) (*idhttp.Report, error) {
	node, err := nodeOf(cfg.Node)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	r := &idhttp.Report{Node: cfg.Node.Name, Ready: true}
	names := []string{"flake"}
	for _, g := range cfg.Generators {
		names = append(names, g.Name)
	}
	var notReady error
	for _, name := range names {
		g := idhttp.GeneratorReport{Name: name}
		if err := describe(ctx, node, &g, r); err != nil {
			return nil, err
		}
		if r.Generators = append(r.Generators, g); !g.Ready && r.Ready {
			r.Ready, notReady = false, escape.Err(fmt.Errorf("not ready: %s: %s", name, g.Reason))
		}
	}
	return r, notReady
}

// describe has a generator tell what it is, and whether it can make an id: if so, it
// makes one.
func describe(ctx context.Context, node *client.Node, g *idhttp.GeneratorReport, r *idhttp.Report) error {
	err := infoOf(ctx, node, g.Name, g, r)
	if errors.Is(err, client.ErrNoProcess) {
		g.Reason = "noproc"
		return nil
	}
	if err != nil {
		return err
	}
	answer, err := node.Call(ctx, etf.Atom(g.Name), etf.Atom("get"))
	g.Reason = "no id"
	if t, ok := answer.(etf.Tuple); ok && len(t) == 2 {
		if reason, ok := t[1].(etf.Atom); ok {
			g.Reason = string(reason)
		} else if t[0] == etf.Atom("ok") {
			g.Ready, g.Reason = true, ""
		}
	}
	return err
}

// infoOf reads the properties that a generator tells, which are named as those of the
// report.
func infoOf(ctx context.Context, node *client.Node, generator string, into ...any) error {
	info, err := node.Call(ctx, etf.Atom(generator), etf.Atom("info"))
	if err != nil {
		return err
	}
	list, ok := info.(etf.List)
	properties := make(map[etf.Atom]etf.Term)
	for _, p := range list {
		if p, ok := p.(etf.Tuple); ok && len(p) == 2 {
			if name, ok := p[0].(etf.Atom); ok {
				properties[name] = p[1]
			}
		}
	}
	text, err := json.Marshal(properties)
	for _, v := range into {
		err = cmp.Or(err, json.Unmarshal(text, v))
	}
	if !ok || err != nil {
		return fmt.Errorf("%s does not tell what it is: it is an older flake, or another program", generator)
	}
	return nil
}
