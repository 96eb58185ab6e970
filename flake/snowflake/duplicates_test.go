package snowflake

import (
	"flag"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/duplicates"
)

var duplicatesIDs = flag.Int("duplicates.ids", 10_000_000, "how many ids to make from 8 goroutines, at 4,096,000 a second")

func TestNoDuplicates(t *testing.T) {
	few, many := Layout{Time: 41, Worker: 4, Sequence: 8, Epoch: Twitter.Epoch}, Layout{Time: 41, Sequence: 22, Epoch: Twitter.Epoch}
	for name, c := range map[string]struct {
		layout Layout
		random bool
		clock  func() uint64
		ids    int
	}{
		"from 0":                      {Twitter, false, nil, *duplicatesIDs},
		"from a random start":         {Twitter, true, nil, *duplicatesIDs / 10},
		"of a monotonic clock":        {Twitter, false, flake.MonotonicClock(), *duplicatesIDs / 10},
		"of few bits":                 {few, false, nil, *duplicatesIDs / 100},
		"of many a millisecond":       {many, false, nil, *duplicatesIDs / 10},
		"of many from a random start": {many, true, nil, *duplicatesIDs / 10},
	} {
		t.Run(name, func(t *testing.T) {
			duplicates.Check(t, c.ids, newTest(t, c.layout, 0, Options{RandomStart: c.random, Clock: c.clock}),
				func(id ID) uint64 {
					p := c.layout.Decompose(id)
					return p.Milli<<c.layout.Sequence | uint64(p.Sequence)
				},
				func(id, last ID) bool {
					return (id > last || c.random) && id>>c.layout.low() >= last>>c.layout.low()
				})
		})
	}
}
