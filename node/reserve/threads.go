package reserve

import (
	"fmt"
	"math"
	"runtime"
	"sync"
)

// ThreadsKept is how many threads no connection gets, besides one per processor: Go
// ends a process that cannot start another.
const ThreadsKept = 24

// allThreads is how many threads this process could have when first asked.
var allThreads = sync.OnceValue(func() int64 {
	own, left := tasks()
	if left > math.MaxInt64-own {
		return math.MaxInt64
	}
	return own + left
})

func threadsKept() int64 { return ThreadsKept + int64(runtime.GOMAXPROCS(0)) }

// Threads returns how many there are for connections.
func Threads() int64 { return max(allThreads()-threadsKept(), 0) }

// EnoughThreads fails if there are fewer than are kept.
func EnoughThreads() error {
	if most, need := allThreads(), threadsKept(); most < need {
		return fmt.Errorf("the node may have %d threads, and needs %d or more, %d and one for each processor; raise the limit, "+
			"as with ulimit -u, TasksMax in a unit of systemd or --pids-limit of a container, or have GOMAXPROCS set lower",
			most, need, ThreadsKept)
	}
	return nil
}
