package main

import (
	"math"
	"testing"
)

// The limit is above what connections hold, or the collector would run all the time,
// and below what the container may take.
func TestMemoryFor(t *testing.T) {
	for _, test := range []struct {
		connections int
		most, want  int64
	}{
		{0, math.MaxInt64, 80 << 20},
		{1024, math.MaxInt64, 80 << 20},
		{1025, math.MaxInt64, 88 << 20},
		{4096, math.MaxInt64, 176 << 20},
		{4096, 100 << 20, 100 << 20},
	} {
		if got := memoryFor(test.connections, test.most); got != test.want {
			t.Errorf("%d connections: %d, want %d", test.connections, got, test.want)
		}
	}
}

func TestHTTPWithin(t *testing.T) {
	for memory, want := range map[int64]int{28 << 20: 56, 100 << 20: 200, math.MaxInt64: 768} {
		if got := httpWithin(memory); got != want {
			t.Errorf("%d: %d, want %d", memory, got, want)
		}
	}
}
