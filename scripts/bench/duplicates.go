package main

import (
	"bytes"
	"fmt"
	"log"
	"slices"
	"sync"

	"github.com/muyo/sno"
)

const goroutines = 8

// findDuplicates makes ids from goroutines at once, flake's and as many as fit
// of sno's, and sorts them to find those that are there twice. It is true if
// flake has none.
func findDuplicates(n int) bool {
	g := newFlake()
	ours := twins(n, func() (key [16]byte) {
		id, err := g.Next()
		if err != nil {
			log.Fatal(err)
		}
		return id
	})
	fmt.Printf("flake:    %d ids from %d goroutines, %d twice\n", n, goroutines, ours)
	s, err := sno.NewGenerator(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	const few = 16_000_000 // sno makes 16 M/s at most
	m := min(n, few)
	fmt.Printf("muyo/sno: %d ids from %d goroutines, %d twice\n", m, goroutines, twins(m, func() (key [10]byte) { return s.New(0) }))
	return ours == 0
}

// twins gives how many of n keys are there already. It makes them in parts, so
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
