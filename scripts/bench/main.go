// Bench measures package flake beside other generators of ids, in one run on
// one machine, and prints the ratios:
//
//	cd scripts/bench && go run .                        # all of it, in a few minutes
//	cd scripts/bench && go run . -duplicates 100000000  # ids of 8 goroutines, looking for twins
//
// It is a module of its own, so that the peers are no dependencies of flake.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/flake-go/flake/flake"
)

func main() {
	duplicates := flag.Int("duplicates", 0, "make so many ids from 8 goroutines and look for duplicates, instead")
	rounds := flag.Int("rounds", 3, "how often each is measured; the best counts")
	bulkOnly := flag.Bool("bulk", false, "measure ids in bulk only")
	flag.Parse()
	if *duplicates > 0 {
		if !findDuplicates(*duplicates) {
			os.Exit(1)
		}
		return
	}
	fmt.Printf("%s, %s/%s, %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if !*bulkOnly {
		single(*rounds)
		text(*rounds)
	}
	bulk(*rounds)
}

// A row is one thing measured, in nanoseconds.
type row struct {
	name   string
	ns     float64
	allocs int64
}

// measure runs all of a table's rows in turn, so that what else the machine
// does falls on each, and keeps the best of each.
func measure(rounds int, names []string, fs []func(b *testing.B)) []row {
	rows := make([]row, len(names))
	for round := range rounds {
		for i, f := range fs {
			r := testing.Benchmark(f)
			ns := float64(r.T.Nanoseconds()) / float64(r.N)
			if round == 0 || ns < rows[i].ns {
				rows[i] = row{names[i], ns, r.AllocsPerOp()}
			}
		}
	}
	return rows
}

// table prints rows with their ratio to the first.
func table(title string, rows []row) {
	fmt.Printf("\n%-34s %8s %8s %7s\n", title, "ns", "ratio", "allocs")
	for _, r := range rows {
		fmt.Printf("%-34s %8.1f %8.2f %7d\n", r.name, r.ns, r.ns/rows[0].ns, r.allocs)
	}
}

func newFlake() *flake.Generator {
	g, err := flake.NewGenerator(0x020000000001, nil)
	if err != nil {
		log.Fatal(err)
	}
	return g
}

// each turns a function into a benchmark of it. What it gives is kept, so that
// it is made.
func each[T any](f func() T) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		var last T
		for range b.N {
			last = f()
		}
		runtime.KeepAlive(last)
	}
}

// best gives the highest of some measurements.
func best(rounds int, f func() float64) float64 {
	all := make([]float64, rounds)
	for i := range all {
		all[i] = f()
	}
	return slices.Max(all)
}
