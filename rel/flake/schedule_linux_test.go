package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// All threads of the command are scheduled as a batch.
func TestYieldToCallers(t *testing.T) {
	t.Parallel()
	n := startNode(t, "")
	n.erl(nil, "concurrent")
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid), "task"))
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if err == nil && attr.Policy != unix.SCHED_BATCH {
			t.Errorf("thread %d has policy %d", id, attr.Policy)
		}
	}
}
