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

// callers starts n nodes. The caller must stop them, even after an error.
func (w *world) callers(n int) (nodes []*callers, stop func(), err error) {
	stop = func() {
		for _, c := range nodes {
			c.stop()
		}
	}
	for i := range n {
		cmd := w.erl(w.far, fmt.Sprintf("caller%d", i), "bench_caller", "-noshell")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nodes, stop, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nodes, stop, err
		}
		if err := cmd.Start(); err != nil {
			return nodes, stop, err
		}
		c := &callers{in: in, out: bufio.NewScanner(out), stop: func() error { in.Close(); return cmd.Wait() }}
		c.out.Buffer(nil, 1<<20)
		nodes = append(nodes, c)
	}
	for _, c := range nodes {
		if line, err := c.line(); err != nil || line != "ready" {
			return nodes, stop, fmt.Errorf("a caller's node says %q: %w", line, err)
		}
	}
	return nodes, stop, nil
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

// call has as many nodes and processes as the setting says call s for a time.
func call(s *server, nodes []*callers, set setting, d time.Duration) (load, error) {
	nodes = nodes[:set.nodes]
	how := strconv.Itoa(set.depth)
	if set.every > 0 {
		how = fmt.Sprintf("{every,%d}", set.every)
	}
	all := load{latency: make(map[int]float64)}
	before, err := usageOf(s.pid())
	if err != nil {
		return all, err
	}
	for i, c := range nodes {
		n := set.processes / len(nodes)
		if _, err := fmt.Fprintf(c.in, "{run,'%s',%d,%s,%d,%s}.\n", s.node, n, how, d.Milliseconds(), set.request); err != nil {
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
