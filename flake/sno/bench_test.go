package sno

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

var (
	sinkID   ID
	sinkText []byte
)

func newGenerator(t testing.TB, s *Snapshot, clock func() uint64) *Generator {
	t.Helper()
	g, err := NewGenerator(s, Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// BenchmarkNext measures the time per id. The format allows one id per 61 ns.
func BenchmarkNext(b *testing.B) {
	g := newGenerator(b, nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		id, err := g.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		sinkID = id
	}
}

// BenchmarkNextBelowCeiling uses a quarter of each tick's ids, so no call waits.
func BenchmarkNextBelowCeiling(b *testing.B) {
	clock := uint64(Epoch)
	g := newGenerator(b, nil, func() uint64 { return clock })
	b.ReportAllocs()
	for i := range b.N {
		if i%(1<<14) == 0 {
			clock += unit
		}
		sinkID, _ = g.Next(context.Background())
	}
}

// BenchmarkNextN measures the time per id.
func BenchmarkNextN(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, size := range []int{1, 16, 1024} {
			b.Run(fmt.Sprintf("threads=%d/size=%d", threads, size), func(b *testing.B) {
				g := newGenerator(b, nil, nil)
				var wg sync.WaitGroup
				for range threads {
					wg.Go(func() {
						ids := make([]ID, size)
						for left := b.N / threads; left > 0; left -= size {
							if _, err := g.NextN(b.Context(), ids); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func BenchmarkAppendText(b *testing.B) {
	id := join(1<<41, 1<<24|77<<16|5, 12345)
	b.ReportAllocs()
	for b.Loop() {
		sinkText, _ = id.AppendText(sinkText[:0])
	}
}

func BenchmarkParse(b *testing.B) {
	text := join(1<<41, 1<<24|77<<16|5, 12345).String()
	b.ReportAllocs()
	for b.Loop() {
		sinkID, _ = Parse(text)
	}
}
