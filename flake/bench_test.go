package flake

import (
	"testing"
)

var (
	sinkID   ID
	sinkText []byte
)

func BenchmarkNext(b *testing.B) {
	g, _ := NewGenerator(1, nil)
	b.ReportAllocs()
	for b.Loop() {
		id, err := g.Next()
		if err != nil {
			b.Fatal(err)
		}
		sinkID = id
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
		sinkText, _ = id.AppendText(sinkText[:0], 62)
	}
}

func BenchmarkAppendPadded62(b *testing.B) {
	id := Make(1<<40+12345, 0x020000000001, 77)
	b.ReportAllocs()
	for b.Loop() {
		sinkText, _ = id.AppendPadded(sinkText[:0], 62)
	}
}

func BenchmarkParseBase62(b *testing.B) {
	id := Make(1<<40+12345, 0x020000000001, 77)
	text, _ := id.Text(62)
	b.ReportAllocs()
	for b.Loop() {
		sinkID, _ = Parse(text, 62)
	}
}

func BenchmarkParseString(b *testing.B) {
	text := Make(1<<40+12345, 0x020000000001, 77).String()
	b.ReportAllocs()
	for b.Loop() {
		sinkID, _ = Parse(text, 62)
	}
}
