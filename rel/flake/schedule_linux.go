package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// yieldToCallers has the kernel not take the processor from others for a thread of
// this process that has something to read (SCHED_BATCH of sched(7)). A BEAM on the
// machine that is sending call after call then sends on, and all are answered
// together: else it is stopped at each, and started again by the answer.
//
// Threads inherit that. An error leaves all as it was, which is only slower.
func yieldToCallers() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if err == nil && attr.Policy == unix.SCHED_NORMAL { // another is an operator's choice
			attr.Policy = unix.SCHED_BATCH
			err = unix.SchedSetAttr(id, attr, 0)
		}
		if err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
