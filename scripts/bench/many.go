package main

import "fmt"

// A call for leased ids, and how many they are.
const (
	leaseOf = 1 << 20
	listOf  = 1000
)

// many measures calls for many ids at a time, of one Erlang caller.
func many(w *world, p plan) ([]row, error) {
	s := w.flake()
	if _, err := w.start(s); err != nil {
		return nil, err
	}
	defer s.stop()
	nodes, stop, err := w.callers(1)
	defer stop()
	if err != nil {
		return nil, err
	}
	var leases, lists, singles, packed []float64
	for range p.rounds {
		for _, m := range []struct {
			rates   *[]float64
			request string
			ids     float64
		}{
			{&leases, fmt.Sprintf("{lease,%d}", leaseOf), leaseOf},
			{&lists, fmt.Sprintf("{get_many,%d}", listOf), listOf},
			{&packed, fmt.Sprintf("{get_binary,%d}", listOf), listOf},
			{&singles, "get", 1},
		} {
			l, err := call(s, nodes, setting{processes: 1, nodes: 1, depth: 1, request: m.request}, p.erlang)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.request, err)
			}
			*m.rates = append(*m.rates, l.rate*m.ids)
		}
	}
	const section = "many ids a call"
	most := make([]float64, p.rounds)
	for i := range most {
		most[i] = ceiling
	}
	return []row{
		compare(section, fmt.Sprintf("{lease,%d}", leaseOf), "ids/s", "the format's ceiling", most, leases).aim(atLeast(0.99)),
		compare(section, fmt.Sprintf("{get_many,%d}", listOf), "ids/s", "as many gets", singles, lists),
		compare(section, fmt.Sprintf("{get_binary,%d}", listOf), "ids/s", "as many gets", singles, packed),
	}, nil
}
