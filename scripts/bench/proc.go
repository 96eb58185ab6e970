package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// cpuTime is what a process has used so far: utime and stime of
// /proc/PID/stat, but to the nanosecond instead of the hundredth of a second.
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

// resident is the memory of a process that is in RAM, in octets.
func resident(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.Atoi(f[1])
			return float64(kb) * 1024, err
		}
	}
	return 0, fmt.Errorf("no VmRSS of process %d", pid)
}

// machine says what all was measured on.
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
	return fmt.Sprintf("%s, Linux %s", model, strings.TrimSpace(string(release)))
}
