package reserve

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// tasks returns how many threads this process has, and how many more it may have.
// By the user's limit, the sum is the same while Go starts threads.
func tasks() (own, left int64) {
	left = tasksOf(groups("/proc/self/cgroup", "/sys/fs/cgroup", "pids"))
	own = threadsOf("/proc/self")
	var l unix.Rlimit
	if os.Getuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &l) == nil && l.Cur < math.MaxInt64 {
		left = min(left, int64(l.Cur)-own-tasksOfOthers("/proc", os.Getuid()))
	}
	return own, left
}

// tasksOfOthers counts the threads of all other visible processes of a user.
func tasksOfOthers(proc string, uid int) (n int64) {
	all, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, process := range all {
		info, err := os.Stat(process)
		if err != nil || filepath.Base(process) == strconv.Itoa(os.Getpid()) {
			continue // it has ended, or is this one
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
