package sno

import (
	"flag"
	"testing"

	"github.com/flake-go/flake/flake/internal/duplicates"
)

var duplicatesIDs = flag.Int("duplicates.ids", 1_000_000, "how many ids to make from 8 goroutines")

func TestNoDuplicates(t *testing.T) {
	duplicates.Check(t, *duplicatesIDs, newGenerator(t, nil, nil),
		func(id ID) uint64 { return id.Milli()/unit<<16 | uint64(id.Sequence()) },
		func(id, last ID) bool { return id.Compare(last) > 0 })
}
