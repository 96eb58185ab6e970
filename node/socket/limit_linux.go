package socket

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/internal/cgroup"
)

// threadsKept is the number of threads that connections may not use.
func threadsKept() int64 { return ThreadsKept + int64(runtime.GOMAXPROCS(0)) }

// EnoughThreads fails if the process can have fewer threads than those that connections may not
// use.
func EnoughThreads() error {
	if allowed, need := allThreads(), threadsKept(); allowed < need {
		return fmt.Errorf("the limit of %d threads is below the %d that the node needs (%d and one per processor); "+
			"raise it with ulimit -u, TasksMax of a systemd unit or --pids-limit of a container, or lower GOMAXPROCS",
			allowed, need, ThreadsKept)
	}
	return nil
}

// most returns the bound on threads that read.
var most = sync.OnceValue(func() int32 {
	return int32(min(MaxThreads, max(allThreads()-threadsKept(), 0)/threadsEach))
})

// allThreads returns how many threads this process can have, as of the first call.
var allThreads = sync.OnceValue(func() int64 {
	all := int64(math.MaxInt64)
	own := threadsOf("/proc/self")
	if left := cgroup.Tasks(); left < all-own {
		all = own + left
	}
	var l unix.Rlimit
	if os.Getuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &l) == nil && l.Cur < math.MaxInt64 {
		all = min(all, int64(l.Cur)-threadsOfOthers(os.Getuid()))
	}
	return all
})

// threadsOfOthers returns the number of threads of the user's other visible processes.
func threadsOfOthers(uid int) (n int64) {
	all, _ := filepath.Glob("/proc/[0-9]*")
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
