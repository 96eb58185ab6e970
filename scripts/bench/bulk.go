package main

import (
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/flake-go/flake/flake"
)

// ceiling is what the format has: 65,536 ids a millisecond.
const ceiling = 65536 * 1000

func bulk(rounds int) {
	fmt.Printf("\n%-34s %8s %8s\n", "ids in bulk, threads x at a time", "M/s", "ceiling")
	for _, threads := range []int{1, 2} {
		for _, size := range []int{1, 4, 16, 256, 1024} {
			rate := best(5*rounds, func() float64 { return rateOf(threads, size) })
			fmt.Printf("%-34s %8.2f %7.1f%%\n", fmt.Sprintf("%d x %d", threads, size), rate/1e6, 100*rate/ceiling)
		}
	}
}

// rateOf measures ids a second. It can come out a little above the ceiling, as
// the first millisecond is whole however late in it the first id is.
func rateOf(threads, size int) float64 {
	const total = 20_000_000
	g := newFlake()
	start := time.Now()
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			ids := make([]flake.ID, size)
			for left := total / threads; left > 0; left -= size {
				if _, err := g.NextN(ids); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	wg.Wait()
	return total / time.Since(start).Seconds()
}
