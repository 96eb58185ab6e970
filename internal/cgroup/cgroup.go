// Package cgroup reads the limits that Linux's control groups set for this process: see cgroups(7).
package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory the process may use, or math.MaxInt64 if there is no
// limit.
func Memory() int64 { return memoryOf(groups("/proc/self/cgroup", "/sys/fs/cgroup", "memory")) }

// Tasks returns how many more processes and threads may start, or math.MaxInt64 if there is no
// limit.
func Tasks() int64 { return tasksOf(groups("/proc/self/cgroup", "/sys/fs/cgroup", "pids")) }

func memoryOf(groups []string) int64 {
	lowest := int64(math.MaxInt64)
	for _, dir := range groups {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} { // in cgroup versions 2 and 1
			if n, ok := number(dir, file); ok {
				lowest = min(lowest, n)
			}
		}
	}
	return lowest
}

func tasksOf(groups []string) int64 {
	left := int64(math.MaxInt64)
	for _, dir := range groups {
		allowed, limited := number(dir, "pids.max")
		if now, ok := number(dir, "pids.current"); limited && ok {
			left = min(left, allowed-now)
		}
	}
	return left
}

// number reads a number from a file. ok is false if there is none: the file is missing, or it
// contains "max", which means no limit.
func number(dir, file string) (n int64, ok bool) {
	text, _ := os.ReadFile(filepath.Join(dir, file))
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// groups returns the directories of a process's control groups for a controller, and those of all
// groups above.
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
