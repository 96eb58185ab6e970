package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// callers is an Erlang node whose processes call.
type callers struct {
	in   io.Writer
	out  *bufio.Scanner
	stop func() error
}

func (w *world) callers(n int) ([]*callers, error) {
	var nodes []*callers
	for i := range n {
		cmd := w.erl(fmt.Sprintf("caller%d@127.0.0.1", i), "bench_caller", "-noshell")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nodes, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nodes, err
		}
		if err := cmd.Start(); err != nil {
			return nodes, err
		}
		c := &callers{in: in, out: bufio.NewScanner(out), stop: func() error { in.Close(); return cmd.Wait() }}
		c.out.Buffer(nil, 1<<20)
		nodes = append(nodes, c)
	}
	for _, c := range nodes {
		if line, err := c.line(); err != nil || line != "ready" {
			return nodes, fmt.Errorf("a caller's node says %q: %w", line, err)
		}
	}
	return nodes, nil
}

func (c *callers) line() (string, error) {
	if !c.out.Scan() {
		return "", errors.Join(c.out.Err(), io.ErrUnexpectedEOF)
	}
	return c.out.Text(), nil
}

// load is what callers measured.
type load struct {
	calls   float64
	rate    float64         // calls a second
	cpu     float64         // of the server, microseconds a call
	sleeps  float64         // of the server, a call
	latency map[int]float64 // calls by microseconds
}

// spent adds what the server has used since before.
func (l *load) spent(s *server, before usage) error {
	after, err := usageOf(s.pid())
	l.cpu = float64(after.cpu-before.cpu) / 1e3 / l.calls
	l.sleeps = (after.sleeps - before.sleeps) / l.calls
	return err
}

// call has processes of the nodes call s for a time, each with depth calls under way.
func call(s *server, nodes []*callers, processes, depth int, request string, d time.Duration) (load, error) {
	all := load{latency: make(map[int]float64)}
	before, err := usageOf(s.pid())
	if err != nil {
		return all, err
	}
	for i, c := range nodes {
		n := processes / len(nodes)
		if _, err := fmt.Fprintf(c.in, "{run,'%s',%d,%d,%d,%s}.\n", s.node, n, depth, d.Milliseconds(), request); err != nil {
			return all, fmt.Errorf("caller %d: %w", i, err)
		}
	}
	for i, c := range nodes {
		line, err := c.line()
		if err == nil {
			err = all.add(line)
		}
		if err != nil {
			return all, fmt.Errorf("caller %d of %s: %w: %s", i, s.node, err, s.log.Bytes())
		}
	}
	return all, all.spent(s, before)
}

// add adds what one node measured: calls, nanoseconds, microseconds:calls...
func (l *load) add(line string) error {
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[0] == "error" {
		return errors.New(line)
	}
	calls, err1 := strconv.ParseFloat(fields[0], 64)
	ns, err2 := strconv.ParseFloat(fields[1], 64)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	l.calls += calls
	l.rate += calls / ns * 1e9
	for _, f := range fields[2:] {
		var us, n int
		if _, err := fmt.Sscanf(f, "%d:%d", &us, &n); err != nil {
			return err
		}
		l.latency[us] += float64(n)
	}
	return nil
}

// quantile is the latency that the part q of all calls does not exceed.
func (l *load) quantile(q float64) float64 {
	seen := 0.0
	latencies := slices.SortedFunc(maps.Keys(l.latency), cmp.Compare)
	for _, us := range latencies {
		if seen += l.latency[us]; seen >= q*l.calls {
			return float64(us)
		}
	}
	return 0
}

// erlangSetting is a number of callers, and what is known of it to be reached.
type erlangSetting struct {
	processes, nodes int
	depth            int // calls under way of each process, by send_request if more than 1
	request          string
	rate, cpu        target
}

var erlangSettings = []erlangSetting{
	{1, 1, 1, "get", atLeast(1.5), atMost(0.6)},
	{8, 1, 1, "get", target{}, target{}},
	{64, 1, 1, "get", atLeast(1.1), atMost(0.45)},
	{256, 1, 1, "get", atLeast(1.1), atMost(0.45)},
	{64, 8, 1, "get", target{}, target{}},
	{1, 1, 64, "get", atLeast(2), atMost(0.4)},
	{1, 1, 1, "{get,62}", target{}, target{}},
	{64, 1, 1, "{get,62}", target{}, target{}},
}

const erlangNodes = 8

// erlang measures both servers under real Erlang callers.
func erlang(w *world, p plan, pair [2]*server) ([]row, error) {
	nodes, err := w.callers(erlangNodes)
	defer func() {
		for _, c := range nodes {
			c.stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, s := range pair {
		if _, err := call(s, nodes, 8*erlangNodes, 1, "get", p.erlang/2); err != nil {
			return nil, err
		}
	}
	loads := make([]versus[load], len(erlangSettings))
	for round := range p.rounds {
		for i, set := range erlangSettings {
			err := loads[i].add(round, func(side int) (load, error) {
				return call(pair[side], nodes[:set.nodes], set.processes, set.depth, set.request, p.erlang)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	var rows []row
	for i, set := range erlangSettings {
		what := fmt.Sprintf("%s, %d", set.request, set.processes)
		if set.nodes > 1 {
			what += fmt.Sprintf(" on %d nodes", set.nodes)
		}
		if set.depth > 1 {
			what += fmt.Sprintf(" with %d by send_request", set.depth)
		}
		add := func(unit string, t target, of func(load) float64) {
			rows = append(rows, loads[i].row("Erlang callers", what, unit, t, of))
		}
		add("calls/s", set.rate, func(l load) float64 { return l.rate })
		add("µs CPU", set.cpu, func(l load) float64 { return l.cpu })
		add("sleeps", less, func(l load) float64 { return l.sleeps })
		add("µs p50", less, func(l load) float64 { return l.quantile(0.5) })
		add("µs p99", less, func(l load) float64 { return l.quantile(0.99) })
		add("µs p99.9", less, func(l load) float64 { return l.quantile(0.999) })
	}
	return rows, nil
}
