// Bench measures flake against an OTP gen_server that does the same job, and against an
// echo that does nothing. The callers are real Erlang nodes, with or without a virtual
// network link (which needs root), and with or without other load. It also runs benchmarks of
// package flake, and benchmarks that compare the package with other libraries:
//
//	scripts/bench/run                                 # everything, in half an hour
//	scripts/bench/run -short                          # everything, in a few minutes
//	scripts/bench/run -json bench.json -svg bench.svg # also as data and as a chart
//	scripts/bench/run -only ids                       # some of the sections
//
// It needs Erlang, iproute2, util-linux and wrk. It is a separate module because it needs Linux.
// If one is missing, it measures nothing. A section that fails does not stop the others.
//
// All sides are measured in turn, round by round, on one machine. The result is the median of
// the rounds' ratios, since absolute figures depend on the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// plan says how long everything is measured. Many short rounds are better than a few long ones,
// because other load on the machine spoils only some of them.
type plan struct {
	rounds         int           // the result is their median
	erlang, client time.Duration // for one server, in one round, in one setting
	latency        time.Duration // like erlang, but at half of the highest load
	http           time.Duration // for one run of wrk, in whole seconds
	starts         int
	idle           time.Duration // the wait before memory is measured
	calls          int           // how many calls are made before memory is measured again
	idRounds       int           // rounds of a benchmark of one call: many and short, so that some are undisturbed
	bulkRounds     int           // rounds of a benchmark of many ids a call
}

var (
	fullPlan = plan{
		rounds: 15, erlang: time.Second, latency: 2 * time.Second, client: 300 * time.Millisecond,
		http: 2 * time.Second, starts: 15, idle: 2 * time.Second, calls: 10_000_000,
		idRounds: 200, bulkRounds: 200,
	}
	shortPlan = plan{
		rounds: 7, erlang: 150 * time.Millisecond, latency: 400 * time.Millisecond, client: 40 * time.Millisecond,
		http: time.Second, starts: 5, idle: 300 * time.Millisecond, calls: 200_000,
		idRounds: 30, bulkRounds: 20,
	}
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "echo":
			serveEcho(os.Args[2])
		case "bare":
			serveBare()
		}
	}
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	var (
		quick    = flag.Bool("short", false, "measure for a few minutes instead of thirty")
		root     = flag.String("root", "../..", "the `directory` of the tree to measure")
		jsonFile = flag.String("json", "", "write the result to `FILE`")
		svgFile  = flag.String("svg", "", "draw the ratios to `FILE`")
		only     = flag.String("only", strings.Join(names, ","), "the `sections` to measure")
	)
	flag.Parse()
	p := fullPlan
	if *quick {
		p = shortPlan
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, failed := measure(ctx, *root, p, strings.Split(*only, ","))
	if r == nil {
		log.Fatal(failed)
	}
	r.print(os.Stdout)
	if *jsonFile != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		failed = errors.Join(failed, err, os.WriteFile(*jsonFile, append(text, '\n'), 0o666))
	}
	if *svgFile != "" {
		failed = errors.Join(failed, os.WriteFile(*svgFile, r.svg(), 0o666))
	}
	if failed != nil {
		log.Fatal(failed)
	}
}

// measure measures the sections whose names are in only. The result contains those that succeeded,
// and the error names the others. The result is nil if no section could start.
func measure(ctx context.Context, root string, p plan, only []string) (*result, error) {
	if err := missing(only); err != nil {
		return nil, err
	}
	release, err := exec.CommandContext(ctx, "erl", "-noinput", "-eval",
		`io:put_chars(erlang:system_info(otp_release)), halt().`).Output()
	if err != nil {
		return nil, fmt.Errorf("erl: %w", err)
	}
	r := &result{Machine: machine(), Processors: runtime.NumCPU(), Go: runtime.Version(), OTP: string(release),
		Rounds: p.rounds}
	w, err := newWorld(ctx, root)
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, section := range sections {
		if !slices.Contains(only, section.name) {
			continue
		}
		begin := time.Now()
		v := w.scope()
		rows, err := section.measure(v, p)
		v.close()
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", section.name, err))
			if ctx.Err() != nil {
				break
			}
			log.Printf("%s: %v; continuing with the other sections", section.name, err)
			continue
		}
		log.Printf("%s measured in %.0f s", section.name, time.Since(begin).Seconds())
		r.Rows = append(r.Rows, rows...)
	}
	return r, errors.Join(failed...)
}

// missing returns an error for each name in only that no section has, and for each program that the sections
// need and that this machine lacks.
func missing(only []string) error {
	_, errs := exec.LookPath("erl")
	for _, name := range only {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			errs = errors.Join(errs, fmt.Errorf("-only: there is no section %s", name))
		}
	}
	for _, section := range sections {
		for _, program := range section.programs {
			if _, err := exec.LookPath(program); err != nil && slices.Contains(only, section.name) {
				errs = errors.Join(errs, fmt.Errorf("section %s: %w", section.name, err))
			}
		}
	}
	return errs
}

// A section is a group of measurements that run together.
type section struct {
	name     string
	measure  func(*world, plan) ([]row, error)
	programs []string // that it needs, besides Erlang's
}

var sections = func() (all []section) {
	for _, sc := range scenes {
		var programs []string
		if sc.veth {
			programs = []string{"ip", "nsenter", "taskset"}
		}
		all = append(all, section{sc.section, sc.measure, programs})
	}
	return append(all, section{"many", many, nil}, section{"http", overHTTP, []string{"wrk"}},
		section{"client", goClientRates, nil}, section{"begin", begin, nil}, section{"ids", ids, nil})
}()
