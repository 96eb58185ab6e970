package snowflake

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkNextN measures the time per id. The format allows one id per 244 ns; with 16 bits of
// sequence, one per 15.26 ns; with 22, one per 0.24 ns.
func BenchmarkNextN(b *testing.B) {
	for _, sequence := range []uint8{12, 16, 22} {
		for _, size := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("sequence=%d/size=%d", sequence, size), func(b *testing.B) {
				b.ReportAllocs()
				l := Twitter
				l.Worker, l.Sequence = maxLow-sequence, sequence
				g := newTest(b, l, 1, Options{})
				ids := make([]ID, size)
				for left := b.N; left > 0; left -= size {
					if _, err := g.NextN(context.Background(), ids); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkNext uses a clock that advances by 1 ms per reading, so no call waits.
func BenchmarkNext(b *testing.B) {
	for _, random := range []bool{false, true} {
		b.Run(fmt.Sprintf("random=%v", random), func(b *testing.B) {
			b.ReportAllocs()
			milli := uint64(someTime)
			g := newTest(b, Twitter, 1, Options{RandomStart: random, Clock: func() uint64 { milli++; return milli }})
			for b.Loop() {
				if _, err := g.Next(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	id := ID(0x02308300cd461001)
	var buf []byte
	b.Run("base=58", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = Base58.Append(buf[:0], id)
		}
	})
	b.Run("base=62", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = id.AppendBase(buf[:0], 62)
		}
	})
	b.Run("parse=62", func(b *testing.B) {
		b.ReportAllocs()
		text, _ := id.Text(62)
		for b.Loop() {
			ParseBase(text, 62)
		}
	})
}
