package reserve

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Memory returns how much this process may take, in bytes: nine tenths of the limit
// that its control groups had when first asked. Without any there is no limit.
var Memory = sync.OnceValue(func() int64 {
	return memoryOf(groups("/proc/self/cgroup", "/sys/fs/cgroup", "memory"))
})

func memoryOf(groups []string) int64 {
	most := int64(math.MaxInt64)
	for _, dir := range groups {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} { // of versions 2 and 1
			if n, ok := number(dir, file); ok {
				most = min(most, n/10*9)
			}
		}
	}
	return most
}

// tasksOf returns how many more processes and threads there may be.
func tasksOf(groups []string) int64 {
	left := int64(math.MaxInt64)
	for _, dir := range groups {
		most, limited := number(dir, "pids.max")
		if now, ok := number(dir, "pids.current"); limited && ok {
			left = min(left, most-now)
		}
	}
	return left
}

// number reads a file that may hold a number; without a limit it holds "max".
func number(dir, file string) (n int64, ok bool) {
	text, _ := os.ReadFile(filepath.Join(dir, file))
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// groups returns the folders of a process's control groups, and those above, that a
// controller may use: cgroups(7).
func groups(self, root, controller string) (dirs []string) {
	text, _ := os.ReadFile(self) // only Linux has it
	for line := range strings.Lines(string(text)) {
		group := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(group) != 3 || group[1] != "" && group[1] != controller {
			continue
		}
		tree := filepath.Join(root, group[1]) // version 2 has one tree for all controllers
		for dir := filepath.Clean("/" + group[2]); ; dir = filepath.Dir(dir) {
			dirs = append(dirs, filepath.Join(tree, dir))
			if dir == "/" {
				break
			}
		}
	}
	return dirs
}
