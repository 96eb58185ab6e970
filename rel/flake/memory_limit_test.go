package main

import (
	"math"
	"testing"
)

// The limit is above what connections hold, else the collector would run all the time,
// and below what the container may take.
func TestMemoryFor(t *testing.T) {
	for _, test := range []struct {
		connections int
		tls         bool
		most, want  int64
	}{
		{0, false, math.MaxInt64, 80 << 20},
		{1024, false, math.MaxInt64, 80 << 20},
		{1025, false, math.MaxInt64, 88 << 20},
		{4096, false, math.MaxInt64, 176 << 20},
		{4096, false, 100 << 20, 100 << 20},
		{255, true, math.MaxInt64, 80 << 20},
		{256, true, math.MaxInt64, 96 << 20},
		{4096, true, math.MaxInt64, 432 << 20},
	} {
		if got := memoryFor(test.connections, test.most, test.tls); got != test.want {
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
