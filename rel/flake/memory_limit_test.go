package main

import (
	"math"
	"os"
	"path/filepath"
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

func TestContainerLimit(t *testing.T) {
	for name, test := range map[string]struct {
		groups string
		files  map[string]string
		want   int64
	}{
		"none":      {"", nil, math.MaxInt64},
		"unlimited": {"0::/\n", map[string]string{"memory.max": "max\n"}, math.MaxInt64},
		"version 2": {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "1000\n"}, 900},
		"version 1": {"2:cpu:/x\n4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "2000\n", "memory/x/memory.limit_in_bytes": "10\n"}, 1800},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			self := filepath.Join(root, "self")
			files := map[string]string{"self": test.groups}
			for file, text := range test.files {
				files[file] = text
			}
			for file, text := range files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := containerLimit(self, root); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
