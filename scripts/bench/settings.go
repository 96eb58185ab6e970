package main

import "time"

// What real Erlang callers are measured with, and what is to be reached.

// A setting is a number of callers.
type setting struct {
	processes, nodes int
	depth            int           // calls under way of each process, by send_request if more than 1
	half             bool          // of OTP's highest load, which processes make that call at times
	every            time.Duration // the time between two calls of one; 0: one after the other
	request          string
	rate, cpu        target
	late             [3]target // of quantiles
}

// A scene is where callers call from, and what else the machine does meanwhile.
type scene struct {
	section  string // of -only
	name     string
	veth     bool // from another network namespace
	beside   []work
	settings []setting
}

// work is what else the machine does.
type work struct {
	name  string
	start func(*world) (stop func(), err error)
}

var (
	nothing      = work{"", func(*world) (func(), error) { return func() {}, nil }}
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
		{processes: 256, nodes: 64, rate: atLeast(1.2), cpu: atMost(0.5)},
	}},
	{"latency", "half load over veth", true, []work{nothing, busyLoops}, []setting{
		{processes: 64, half: true, late: [...]target{atMost(1), atMost(1), atMost(0.7)}},
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

// overVeth are callers on one node, of which many reach a rate and a CPU time.
func overVeth(rate, cpu float64) []setting {
	return []setting{
		{processes: 1, rate: atLeast(1.4), cpu: atMost(0.6)},
		{processes: 64, rate: atLeast(rate), cpu: atMost(cpu)},
		{processes: 256, rate: atLeast(rate), cpu: atMost(cpu)},
	}
}
