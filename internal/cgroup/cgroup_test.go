package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// A control group's limit applies to the groups below it.
func TestGroups(t *testing.T) {
	const none = math.MaxInt64
	for name, test := range map[string]struct {
		groups        string
		files         map[string]string
		memory, tasks int64
	}{
		"none": {"", nil, none, none},
		"unlimited": {"0::/\n",
			map[string]string{"memory.max": "max\n", "pids.max": "max\n", "pids.current": "3\n"}, none, none},
		"version 2": {"0::/a/b\n", map[string]string{
			"a/b/memory.max": "max\n", "a/memory.max": "1000\n",
			"a/b/pids.max": "50\n", "a/b/pids.current": "10\n", "a/pids.max": "60\n", "a/pids.current": "55\n",
		}, 1000, 5},
		"version 1": {"2:cpu:/x\n4:memory:/a\n5:pids:/b\n0::/\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "2000\n", "memory/x/memory.limit_in_bytes": "10\n",
			"pids/b/pids.max": "20\n", "pids/b/pids.current": "13\n", "pids/a/pids.max": "1\n", "pids/a/pids.current": "1\n",
		}, 2000, 7},
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
			if got := memoryOf(groups(self, root, "memory")); got != test.memory {
				t.Errorf("memory: %d, want %d", got, test.memory)
			}
			if got := tasksOf(groups(self, root, "pids")); got != test.tasks {
				t.Errorf("tasks: %d, want %d", got, test.tasks)
			}
		})
	}
}
