package reserve

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// ThreadsKept is the number of threads that connections cannot use, in addition to one
// per processor: Go ends a process that cannot start a thread.
const ThreadsKept = 24

// allThreads returns the limit of threads of this process when it was first called.
var allThreads = sync.OnceValue(func() int64 {
	own, left := tasks()
	if left > math.MaxInt64-own {
		return math.MaxInt64
	}
	return own + left
})

func threadsKept() int64 { return ThreadsKept + int64(runtime.GOMAXPROCS(0)) }

// Threads returns the number of threads for connections.
func Threads() int64 { return max(allThreads()-threadsKept(), 0) }

// EnoughThreads fails if the limit of threads is below the number that is kept.
func EnoughThreads() error {
	if most, need := allThreads(), threadsKept(); most < need {
		return fmt.Errorf("the limit of %d threads is below the %d that the node needs, which are %d and one per processor; "+
			"raise it, as with ulimit -u, TasksMax of a systemd unit or --pids-limit of a container, or lower GOMAXPROCS",
			most, need, ThreadsKept)
	}
	return nil
}

// Memory returns the bytes of memory that this process can use: nine tenths of the limit
// of its control groups when Memory was first called, or math.MaxInt64 without a limit.
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

// tasksOf returns how many more processes and threads the groups can have.
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

// number reads a number from a file, which contains "max" if there is no limit.
func number(dir, file string) (n int64, ok bool) {
	text, _ := os.ReadFile(filepath.Join(dir, file))
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// groups returns the directories of a process's control groups for a controller, and of
// the groups above them: see cgroups(7).
func groups(self, root, controller string) (dirs []string) {
	text, _ := os.ReadFile(self) // it exists only on Linux
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
