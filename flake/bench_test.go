package flake

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

var (
	sinkID   ID
	sinkText []byte
)

func BenchmarkNext(b *testing.B) {
	g, _ := NewGenerator(1, Options{})
	b.ReportAllocs()
	for b.Loop() {
		id, err := g.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		sinkID = id
	}
}

// BenchmarkNextN measures the time per id. If the ids of each millisecond are used up, it measures
// whole milliseconds. The format allows one id per 15.26 ns.
func BenchmarkNextN(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, size := range []int{1, 4, 16, 256, 1024} {
			b.Run(fmt.Sprintf("threads=%d/size=%d", threads, size), func(b *testing.B) {
				b.ReportAllocs()
				g := newGenerator(b, nil)
				begin := time.Now()
				for begin.UnixNano()%1e6 > 1e4 {
					begin = time.Now()
				}
				var wg sync.WaitGroup
				for range threads {
					wg.Go(func() {
						ids := make([]ID, size)
						for left := b.N / threads; left > 0; left -= size {
							if _, err := g.NextN(context.Background(), ids); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				sinkID, _ = g.Next(context.Background())
				b.ReportMetric(float64(time.Since(begin))/float64(b.N), "ns/op")
			})
		}
	}
}

func BenchmarkClock(b *testing.B) {
	c := SystemClock()
	for b.Loop() {
		c()
	}
}

func BenchmarkAppendBase62(b *testing.B) {
	id := Make(1<<40+12345, 0x020000000001, 77)
	b.ReportAllocs()
	for b.Loop() {
		sinkText, _ = id.AppendBase(sinkText[:0], 62)
	}
}

func BenchmarkAppendText(b *testing.B) {
	id := Make(1<<40+12345, 0x020000000001, 77)
	b.ReportAllocs()
	for b.Loop() {
		sinkText, _ = id.AppendText(sinkText[:0])
	}
}

func BenchmarkParseBase62(b *testing.B) {
	id := Make(1<<40+12345, 0x020000000001, 77)
	text, _ := id.Text(62)
	b.ReportAllocs()
	for b.Loop() {
		sinkID, _ = ParseBase(text, 62)
	}
}

func BenchmarkParseString(b *testing.B) {
	text := Make(1<<40+12345, 0x020000000001, 77).String()
	b.ReportAllocs()
	for b.Loop() {
		sinkID, _ = ParseBase(text, 62)
	}
}
