package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// usage is what a process has used so far.
type usage struct {
	cpu    time.Duration
	sleeps float64 // how often one of its threads went to sleep
}

func usageOf(pid int) (u usage, err error) {
	if u.cpu, err = cpuTime(pid); err != nil {
		return u, err
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		n, err := statusOf(task, "voluntary_ctxt_switches:")
		if err == nil { // else the thread has ended
			u.sleeps += n
		}
	}
	return u, err
}

// cpuTime is utime and stime of /proc/PID/stat, but to the nanosecond instead of
// the hundredth of a second.
func cpuTime(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED, clock_getcpuclockid(3)
	var ts syscall.Timespec
	clock := ^pid<<3 | sched
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// resident is the memory of a process that is in RAM, in bytes.
func resident(pid int) (float64, error) {
	kb, err := statusOf(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	return kb * 1024, err
}

// statusOf returns a number out of a status file of /proc.
func statusOf(file, key string) (float64, error) {
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			return strconv.ParseFloat(f[1], 64)
		}
	}
	return 0, fmt.Errorf("no %s in %s", key, file)
}

// machine says what all was measured on, and how busy that is with other things.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ := strings.Cut(string(load), " ")
	nice, _ := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 20 less it
	return fmt.Sprintf("%s, Linux %s, load %s before, nice %d", model, strings.TrimSpace(string(release)), busy, 20-nice)
}
