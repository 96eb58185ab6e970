package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"slices"
	"sync"
)

const goroutines = 8

// duplicates makes ids from goroutines at once, and sorts them to find those that
// are there twice.
func duplicates(n int) row {
	g := newFlake()
	mine := twins(n, func() (key [16]byte) {
		id, err := g.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		return id
	})
	return row{
		Section: "ids in process", What: fmt.Sprintf("there twice, of %s, %d goroutines", short(float64(n)), goroutines),
		Unit: "ids", Ours: float64(mine),
	}.aim(oursAtMost(0))
}

// twins returns how many of n keys are there already. It makes them in parts, so
// that they fit in memory; a part that begins again is seen by its ends.
func twins[K [10]byte | [16]byte](n int, next func() K) int {
	const part = 16_000_000
	twice := 0
	var last K
	for done := 0; done < n; done += part {
		keys := make([]K, min(part, n-done))
		var wg sync.WaitGroup
		for chunk := range slices.Chunk(keys, (len(keys)+goroutines-1)/goroutines) {
			wg.Go(func() {
				for i := range chunk {
					chunk[i] = next()
				}
			})
		}
		wg.Wait()
		slices.SortFunc(keys, func(a, b K) int { return bytes.Compare(raw(&a), raw(&b)) })
		for i := range keys {
			if i > 0 && keys[i] == keys[i-1] {
				twice++
			}
		}
		if done > 0 && bytes.Compare(raw(&keys[0]), raw(&last)) <= 0 {
			twice++
		}
		last = keys[len(keys)-1]
	}
	return twice
}

func raw[K [10]byte | [16]byte](k *K) []byte {
	switch k := any(k).(type) {
	case *[10]byte:
		return k[:]
	case *[16]byte:
		return k[:]
	}
	return nil
}
