package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/escape"
	"github.com/flake-go/flake/rel/flake/cli"
	"github.com/flake-go/flake/rel/flake/loadgen"
	"github.com/flake-go/flake/rel/flake/output"
	"github.com/flake-go/flake/rel/flake/remote"
)

// BenchMore is the help of [Bench].
const BenchMore = `Each caller makes its next call when its last one is answered. The ids are
discarded. Over HTTP each caller has its own connection; over the Erlang distribution
callers share one, as a node's processes do, or as many as -connections says.

With -rate, calls are due at fixed times, and a late call's delay counts as part of its
time. If fewer calls were made than were due, a note says so.

It looks for duplicates among the ids that fit in memory: two million runs of
consecutive ids, which a node without other callers makes in half an hour. It prints
how many ids were compared.

The exit status is 1 if there were duplicate ids, or no call was answered.`

type benchFlags struct {
	benchResult
	choice   remote.Choice
	base     *string
	duration *time.Duration
	asJSON   *bool
}

// Bench puts load on a running node and measures it.
func Bench(f *cli.Flags) cli.Action {
	f.Identify(cli.Installed)
	b := benchFlags{choice: remote.NewChoice(f, false)}
	f.StringVar(&b.Generator, "generator", "flake", "take ids from the generator `NAME`")
	b.base = f.String("base", "", "request ids in this `base`, 2 to 62 or canonical; "+
		"without it they are bytes, and leased if -ids is more than 1")
	f.IntVar(&b.Callers, "callers", 16, "the number of concurrent callers")
	f.IntVar(&b.Connections, "connections", 1,
		"the number of connections that callers share, over the Erlang distribution")
	f.IntVar(&b.IDsPerCall, "ids", 1, "the number of ids that a call takes")
	b.duration = f.Duration("duration", 10*time.Second, "how long to run")
	f.Float64Var(&b.Rate, "rate", 0, "the calls per second of all callers together; 0: as many as they can")
	b.asJSON = f.Bool("json", false, "print the result as JSON")
	return f.WithConfig(b.run)
}

type benchResult struct {
	Over        string  `json:"over"` // erlang or http
	Of          string  `json:"of"`   // the node's name or URL
	Generator   string  `json:"generator"`
	Format      string  `json:"format"`
	Callers     int     `json:"callers"`
	Connections int     `json:"connections"`
	IDsPerCall  int     `json:"ids_per_call"`
	Rate        float64 `json:"rate,omitempty"` // the requested rate
	loadgen.Result
	Example string   `json:"example,omitempty"` // an id that repeated, in base 16
	Notes   []string `json:"notes,omitempty"`
}

func (b *benchFlags) run(ctx context.Context, cfg config.Config, _ []string, stdout, stderr io.Writer) error {
	call, err := b.call()
	if err != nil {
		return err
	}
	doors, err := b.connect(ctx, cfg, stderr)
	if err != nil {
		return err
	}
	for _, door := range doors {
		defer door.Close()
	}
	call.Format, b.Format = b.Format, escape.Text(b.Format)
	o := loadgen.Options{Duration: *b.duration, Rate: b.Rate}
	for i := range b.Callers {
		o.Takers = append(o.Takers, call.Taker(doors[i%len(doors)]))
	}
	line := &progress{}
	if output.IsTerminal(stderr) {
		line.w, o.Progress = stderr, line.show
	}
	b.Result, err = loadgen.Run(ctx, o)
	line.clear()
	if err != nil {
		return err
	}
	if b.Twice > 0 {
		id := call.ID(b.Result.Example)
		b.Example = strings.TrimLeft(fmt.Sprintf("%016X%016X", id.Hi, id.Lo), "0")
	}
	b.note()
	if err := show(stdout, *b.asJSON, "", b.benchResult, b.text()); err != nil {
		return err
	}
	switch {
	case b.Twice > 0:
		return fmt.Errorf("%d duplicate ids, for example %s in base 16", b.Twice, b.Example)
	case b.Calls == 0:
		return errors.New("no call was answered")
	}
	return nil
}

// call returns the request that each caller repeats.
func (b *benchFlags) call() (c loadgen.Call, err error) {
	c = loadgen.Call{Generator: b.Generator, N: b.IDsPerCall}
	if *b.base != "" {
		if c.Base, err = baseOf(*b.base); err != nil {
			return c, cli.UsageError(err)
		}
	}
	for _, n := range []struct {
		name       string
		got, limit int
	}{
		{"callers", b.Callers, 10_000}, {"connections", b.Connections, 1000}, {"ids", c.N, client.MaxLeaseSize},
	} {
		if n.got < 1 || n.got > n.limit {
			return c, cli.UsageError(fmt.Errorf("-%s %d: must be 1 to %d", n.name, n.got, n.limit))
		}
	}
	switch {
	case *b.duration <= 0:
		return c, cli.UsageError(fmt.Errorf("-duration %v: must be more than 0", *b.duration))
	case !(b.Rate >= 0 && b.Rate <= 1e9):
		return c, cli.UsageError(fmt.Errorf("-rate %v: must be 0 to 1e9", b.Rate))
	}
	return c, nil
}

// connect returns the doors that callers share, and sets the fields of b that describe the node.
func (b *benchFlags) connect(ctx context.Context, cfg config.Config, stderr io.Writer) (
	doors []client.Door, err error) {
	w, err := b.choice.Web(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, remote.CallTime)
	defer cancel()
	if w != nil {
		transport := w.Client.Transport.(*http.Transport)
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, b.Callers
		b.Over, b.Of, b.Connections = "http", escape.URL(w.URL), b.Callers
		report, err := w.Report(ctx, stderr)
		if report == nil {
			return nil, err
		}
		i := slices.IndexFunc(report.Generators, func(g idhttp.GeneratorReport) bool { return g.Name == b.Generator })
		if i < 0 {
			return nil, fmt.Errorf("the node has no generator %s, or does not report it", b.Generator)
		}
		b.Format = report.Generators[i].Format
		return []client.Door{w.Door}, nil
	}
	dialer, err := remote.Dialer(cfg.Node)
	if err != nil {
		return nil, err
	}
	remote.SayDigest(stderr, cfg.Node)
	b.Over, b.Of, b.Connections = "erlang", cfg.Node.Name, min(b.Connections, b.Callers)
	for range b.Connections {
		doors = append(doors, client.NewNode(cfg.Node.Name, dialer))
	}
	var g idhttp.GeneratorReport
	err = remote.ReadInfo(ctx, doors[0].(*client.Node), b.Generator, &g)
	b.Format = g.Format
	return doors, err
}

// note adds notes about what limited the measurement.
func (r *benchResult) note() {
	if r.Behind {
		r.Notes = append(r.Notes, fmt.Sprintf("could not keep up: %.0f calls a second were due, and %.0f were made",
			r.Rate, r.CallsPerS))
	}
	if r.Busy > 0.9 { // this program may itself be the bottleneck
		r.Notes = append(r.Notes, "this program used nearly all of its processors: "+
			"the node may do more if other machines call it")
	}
	if r.Compared < r.IDs {
		r.Notes = append(r.Notes, fmt.Sprintf("only %d ids were compared: more do not fit in memory", r.Compared))
	}
}

func (r *benchResult) text() string {
	var latencies []string
	for _, name := range []string{"p50", "p90", "p99", "p99.9", "max"} {
		latencies = append(latencies, fmt.Sprint(name, " ", time.Duration(r.Latency[name])*time.Microsecond))
	}
	failed := []string{"none"}
	for i, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		failed = append(failed[:i], fmt.Sprintf("%d %s", r.Errors[kind], kind))
	}
	text := fmt.Sprintf("%s over %s, generator %s (%s); callers %d, connections %d, ids a call %d\n",
		r.Of, r.Over, r.Generator, r.Format, r.Callers, r.Connections, r.IDsPerCall) +
		fmt.Sprintf("calls    %d in %.1f s, %.0f a second\n", r.Calls, r.Seconds, r.CallsPerS) +
		fmt.Sprintf("ids      %d, %.0f a second\n", r.IDs, r.IDsPerS) +
		"latency  " + strings.Join(latencies, ", ") + "\n" +
		"errors   " + strings.Join(failed, ", ") + "\n" +
		fmt.Sprintf("twice    %d of %d ids\n", r.Twice, r.Compared)
	for _, note := range r.Notes {
		text += "note     " + note + "\n"
	}
	return text
}

// progress is a line that is overwritten every second.
type progress struct {
	w     io.Writer // nil if no line is shown
	calls uint64    // the number of calls when the line was last written
}

func (p *progress) show(r loadgen.Result) {
	failed := uint64(0)
	for _, n := range r.Errors {
		failed += n
	}
	fmt.Fprintf(p.w, "\r%3.0f s  %d calls/s  p99 %v  %d errors\x1b[K",
		r.Seconds, r.Calls-p.calls, time.Duration(r.Latency["p99"])*time.Microsecond, failed)
	p.calls = r.Calls
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
