package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// group is a control group for memory, of version 1 or 2.
type group struct {
	dir string
	v2  bool
}

// newGroup creates a group whose processes may use limit bytes.
func newGroup(limit int) (group, error) {
	g := group{dir: "/sys/fs/cgroup/memory"}
	if _, err := os.Stat(g.dir); err != nil {
		g = group{"/sys/fs/cgroup", true}
		os.WriteFile(filepath.Join(g.dir, "cgroup.subtree_control"), []byte("+memory"), 0) // may fail if already enabled
	}
	g.dir = filepath.Join(g.dir, fmt.Sprintf("flake-containers-%d-%d", os.Getpid(), limit>>20))
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return g, fmt.Errorf("control groups for memory must be writable, as they are for root: %w", err)
	}
	memory, swap, noSwap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit
	if g.v2 {
		memory, swap, noSwap = "memory.max", "memory.swap.max", 0
	}
	if err := os.WriteFile(filepath.Join(g.dir, memory), []byte(strconv.Itoa(limit)), 0); err != nil {
		return g, errors.Join(err, g.remove())
	}
	os.WriteFile(filepath.Join(g.dir, swap), []byte(strconv.Itoa(noSwap)), 0) // not all systems have this file
	return g, nil
}

// command returns a command that runs in the group.
func (g group) command(name string, args ...string) *exec.Cmd {
	const enter = `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return exec.Command("sh", append([]string{"-c", enter, g.dir, name}, args...)...)
}

// peak returns the group's peak memory use in bytes, including what the system uses for its
// processes, or 0 if it is unknown.
func (g group) peak() int {
	file := "memory.max_usage_in_bytes"
	if g.v2 {
		file = "memory.peak"
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, file))
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// remove removes the group once no process is in it.
func (g group) remove() error {
	var err error
	for range 100 {
		if err = os.Remove(g.dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
