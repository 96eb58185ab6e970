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
	"unsafe"

	"golang.org/x/sys/unix"
)

// A setting says how many callers there are, and how they call.
type setting struct {
	processes, nodes int
	depth            int           // the concurrent calls of a process; it uses send_request if more than 1
	half             bool          // whether processes pause between calls, for half of OTP's highest load
	every            time.Duration // the time between two calls of a process; 0 means no pause
	request          string
	rate, cpu        target
	late             [3]target // the target for the latency at each of quantiles
}

// A scene says where callers are, and what else the machine does.
type scene struct {
	section  string // its name for -only
	name     string
	veth     bool   // whether callers are in another network namespace
	loads    []work // each in turn
	settings []setting
}

// work is a background load on the machine, which lasts until the world is closed.
type work struct {
	name  string
	start func(*world) error
}

var (
	nothing      = work{"", func(*world) error { return nil }}
	busyLoops    = work{", busy loops", (*world).loops}
	erlangAtWork = work{", Erlang at work", (*world).erlangAtWork}
)

var quantiles = [...]struct {
	of   float64
	unit string
}{{0.5, "µs p50"}, {0.99, "µs p99"}, {0.999, "µs p99.9"}}

var scenes = []scene{
	{"veth", "over veth", true, []work{nothing}, overVeth(1.3, 0.3)},
	{"busy", "over veth", true, []work{busyLoops, erlangAtWork}, overVeth(1.1, 0.45)},
	{"nodes", "nodes over veth", true, []work{nothing, busyLoops}, []setting{
		{processes: 256, nodes: 8, rate: atLeast(1.2), cpu: atMost(0.4)},
		{processes: 256, nodes: 64, rate: atLeast(1.2)}, // an echo takes nearly half of OTP's CPU
	}},
	{"latency", "half load over veth", true, []work{nothing, busyLoops}, []setting{
		{processes: 64, half: true, late: [3]target{atMost(1), atMost(1)}}, // at p99.9, rounds differ tenfold
	}},
	{"erlang", "Erlang callers", false, []work{nothing}, []setting{
		{processes: 1, rate: atLeast(1.5), cpu: atMost(0.6)},
		{processes: 8},
		{processes: 64, rate: atLeast(1.3), cpu: atMost(0.35)},
		{processes: 256, rate: atLeast(1.3), cpu: atMost(0.35)},
		{processes: 64, nodes: 8},
		{processes: 1, depth: 64, cpu: atMost(0.4)},
		{processes: 1, request: "{get,62}"},
		{processes: 64, request: "{get,62}"},
	}},
}

// overVeth returns the settings for callers on one node. rate and cpu are the targets for many callers.
func overVeth(rate, cpu float64) []setting {
	return []setting{
		{processes: 1, rate: atLeast(1.4), cpu: atMost(0.6)},
		{processes: 64, rate: atLeast(rate), cpu: atMost(cpu)},
		{processes: 256, rate: atLeast(rate), cpu: atMost(cpu)},
	}
}

// measure measures the servers with the scene's settings, once with each of its background loads.
func (sc scene) measure(w *world, p plan) (rows []row, err error) {
	if sc.veth {
		if w, err = w.overVeth(); err != nil {
			return nil, err
		}
	}
	servers, err := w.all()
	if err != nil {
		return nil, err
	}
	sets := slices.Clone(sc.settings)
	maxNodes := 0
	for i := range sets {
		s := &sets[i]
		s.nodes, s.depth, s.request = max(s.nodes, 1), max(s.depth, 1), cmp.Or(s.request, "get")
		maxNodes = max(maxNodes, s.nodes)
	}
	nodes, err := w.callers(maxNodes)
	if err != nil {
		return nil, err
	}
	for _, s := range servers { // connect all callers
		if _, err := call(s, nodes, setting{processes: maxNodes, nodes: maxNodes, depth: 1, request: "get"},
			p.erlang); err != nil {
			return nil, err
		}
	}
	for _, other := range sc.loads {
		v := w.scope()
		err := other.start(v)
		if err == nil {
			var more []row
			more, err = measureScene(sc.name+other.name, servers, nodes, sets, p)
			rows = append(rows, more...)
		}
		v.close()
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func measureScene(section string, servers [sides]*server, nodes []*callers, sets []setting, p plan) (
	rows []row, err error,
) {
	for i, s := range sets {
		if s.half {
			if sets[i].every, err = halfOf(servers[theirs], nodes, s, p); err != nil {
				return nil, err
			}
		}
	}
	loads, err := inTurn(p.rounds, len(sets), sides, func(i, side int) (load, error) {
		d := p.erlang
		if sets[i].half {
			d = p.latency
		}
		return call(servers[side], nodes, sets[i], d)
	})
	if err != nil {
		return nil, err
	}
	for i, s := range sets {
		rows = append(rows, s.rows(section, loads[i])...)
	}
	return rows, nil
}

// halfOf returns how far apart the calls of each process must be to make half of s's highest load.
func halfOf(s *server, nodes []*callers, set setting, p plan) (time.Duration, error) {
	set.every = 0
	var rates []float64
	for range p.rounds {
		l, err := call(s, nodes, set, p.erlang)
		if err != nil {
			return 0, err
		}
		rates = append(rates, l.rate)
	}
	return time.Duration(float64(set.processes) / (median(rates) / 2) * 1e9), nil
}

func (s setting) rows(section string, loads versus[load]) (rows []row) {
	what := fmt.Sprintf("%s by %d callers", s.request, s.processes)
	if s.processes == 1 {
		what = s.request + " by 1 caller"
	}
	if s.nodes > 1 {
		what += fmt.Sprintf(" on %d nodes", s.nodes)
	}
	if s.depth > 1 {
		what += fmt.Sprintf(" with %d by send_request", s.depth)
	}
	add := func(unit string, t target, of func(load) float64) {
		rows = append(rows, loads.row(section, what, unit, t, of))
	}
	if s.depth == 1 { // otherwise the caller limits the rate
		add("calls/s", s.rate, func(l load) float64 { return l.rate })
	}
	add("µs CPU", s.cpu, func(l load) float64 { return l.cpu })
	for i, q := range quantiles {
		add(q.unit, s.late[i], func(l load) float64 { return l.quantile(q.of) })
	}
	return rows
}

// loops runs a busy loop on each processor, at the priority of the servers.
func (w *world) loops() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := range 8 * int(unsafe.Sizeof(all)) {
		if !all.IsSet(cpu) {
			continue
		}
		loop := w.command("taskset", "-c", strconv.Itoa(cpu), "sh", "-c", "while :; do :; done")
		if err := w.run(loop); err != nil {
			return err
		}
	}
	return nil
}

// erlangAtWork runs an Erlang node that keeps all processors busy.
func (w *world) erlangAtWork() error { return w.run(w.erl(w.near, "work", "bench_work", "-noinput")) }

// callers is an Erlang node whose processes are callers.
type callers struct {
	in  io.Writer
	out *bufio.Scanner
}

// callers starts n Erlang nodes of callers.
func (w *world) callers(n int) (nodes []*callers, err error) {
	for i := range n {
		cmd := w.erl(w.far, fmt.Sprintf("caller%d", i), "bench_caller", "-noshell")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := w.run(cmd); err != nil {
			return nil, err
		}
		c := &callers{in, bufio.NewScanner(out)}
		c.out.Buffer(nil, 1<<20)
		nodes = append(nodes, c)
	}
	for _, c := range nodes {
		if line, err := c.line(); err != nil || line != "ready" {
			return nil, fmt.Errorf("a caller's node says %q: %w", line, err)
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

// load holds what callers measured.
type load struct {
	calls   float64
	rate    float64         // calls per second
	cpu     float64         // the server's CPU time per call, in microseconds
	latency map[int]float64 // numbers of calls by microseconds
}

// call makes the setting's nodes and processes call s for a time.
func call(s *server, nodes []*callers, set setting, d time.Duration) (load, error) {
	nodes = nodes[:set.nodes]
	how := strconv.Itoa(set.depth)
	if set.every > 0 {
		how = fmt.Sprintf("{every,%d}", set.every)
	}
	all := load{latency: make(map[int]float64)}
	before, err := cpuTime(s.pid())
	if err != nil {
		return all, err
	}
	for i, c := range nodes {
		n := set.processes / len(nodes)
		if _, err := fmt.Fprintf(c.in, "{run,'%s',%d,%s,%d,%s}.\n",
			s.node, n, how, d.Milliseconds(), set.request); err != nil {
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
	after, err := cpuTime(s.pid())
	all.cpu = float64(after-before) / 1e3 / all.calls
	return all, err
}

// add adds the line of one node: calls, nanoseconds, microseconds:calls...
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

// quantile returns the latency that a fraction q of all calls does not exceed.
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

// many measures the calls of one Erlang caller for many ids at a time.
func many(w *world, p plan) ([]row, error) {
	s := w.flake()
	if _, err := w.start(s); err != nil {
		return nil, err
	}
	nodes, err := w.callers(1)
	if err != nil {
		return nil, err
	}
	requests := []struct {
		text string
		ids  float64
	}{{"{lease,1048576}", 1 << 20}, {"{get_many,1000}", 1000}, {"{get_binary,1000}", 1000}, {"get", 1}}
	all, err := inTurn(p.rounds, 1, len(requests), func(_, i int) (float64, error) {
		l, err := call(s, nodes, setting{processes: 1, nodes: 1, depth: 1, request: requests[i].text}, p.erlang)
		return l.rate * requests[i].ids, err
	})
	if err != nil {
		return nil, err
	}
	const section, unit = "many ids a call", "ids/s"
	rates := all[0]
	ceilings, gets := slices.Repeat([]float64{ceiling}, p.rounds), rates[3]
	return []row{
		compare(section, requests[0].text, unit, "the format's ceiling", ceilings, rates[0]).aim(atLeast(0.99)),
		compare(section, requests[1].text, unit, "as many gets", gets, rates[1]),
		compare(section, requests[2].text, unit, "as many gets", gets, rates[2]),
	}, nil
}
