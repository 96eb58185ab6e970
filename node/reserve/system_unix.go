//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package reserve

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// limit returns the current limit on descriptors, which an operator can change. Go raises
// it to the hard limit when the process starts.
func limit() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur)
}

// maxThreads returns how many threads this process can have.
func maxThreads() (threads int64) {
	threads = math.MaxInt64
	if runtime.GOOS != "linux" {
		return threads
	}
	own := threadsOf("/proc/self")
	if left := tasksOf(groups("/proc/self/cgroup", "/sys/fs/cgroup", "pids")); left < threads-own {
		threads = own + left
	}
	var l unix.Rlimit
	if os.Getuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &l) == nil && l.Cur < math.MaxInt64 {
		threads = min(threads, int64(l.Cur)-tasksOfOthers("/proc", os.Getuid()))
	}
	return threads
}

// tasksOfOthers returns the number of threads of the user's other visible processes.
func tasksOfOthers(proc string, uid int) (n int64) {
	all, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, process := range all {
		info, err := os.Stat(process)
		if err != nil || filepath.Base(process) == strconv.Itoa(os.Getpid()) {
			continue // it has ended, or it is this process
		}
		if of, ok := info.Sys().(*syscall.Stat_t); ok && int(of.Uid) == uid {
			n += threadsOf(process)
		}
	}
	return n
}

func threadsOf(process string) int64 {
	all, _ := os.ReadDir(filepath.Join(process, "task"))
	return int64(len(all))
}
