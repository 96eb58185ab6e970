package snowflake

import (
	"flag"
	"testing"

	"github.com/flake-go/flake/flake/internal/duplicates"
)

var duplicatesIDs = flag.Int("duplicates.ids", 10_000_000, "how many ids to make from 8 goroutines, at 4,096,000 a second")

func TestNoDuplicates(t *testing.T) {
	for name, share := range map[string]struct {
		random bool
		ids    int
	}{"from 0": {false, *duplicatesIDs}, "from a random start": {true, *duplicatesIDs / 10}} {
		t.Run(name, func(t *testing.T) {
			duplicates.Check(t, share.ids, newTest(t, Twitter, 1, Options{RandomStart: share.random}),
				func(id ID) uint64 {
					p := Twitter.Decompose(id)
					return p.Milli<<Twitter.Sequence | uint64(p.Sequence)
				},
				func(id, last ID) bool { return (id > last || share.random) && id>>low >= last>>low })
		})
	}
}
