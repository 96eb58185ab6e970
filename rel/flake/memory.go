package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flake-go/flake/flake/flakehttp"
)

// The limit of Go's memory is above what the node may hold, by the limits that
// SECURITY.md lists. Near it garbage is collected at once, so that what hostile peers
// throw away does not add up; were it below what is in use, the collector would do
// nothing else. So it grows with the connections.
const (
	memoryLimit         = 80 << 20 // with memoryConnections or fewer: 44 MiB shared, and theirs
	memoryConnections   = 1024
	memoryPerConnection = 32 << 10 // what one may hold of its own
	memorySteps         = 256
	memoryCheck         = time.Second

	// memoryPerHTTP is of what there is for all: most of it is for others.
	memoryPerHTTP = 512 << 10
)

// boundMemory keeps the limit until the end of ctx. It leaves it to whoever has set
// Go's own.
func boundMemory(ctx context.Context, connections func() int) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	most := memoryOfContainer()
	set := int64(0)
	for check := time.NewTicker(memoryCheck); ; {
		if want := memoryFor(connections(), most); want != set {
			debug.SetMemoryLimit(want)
			set = want
		}
		select {
		case <-check.C:
		case <-ctx.Done():
			check.Stop()
			return
		}
	}
}

// memoryFor gives the limit with so many connections, in steps, as a new one stops the
// program for a moment.
func memoryFor(connections int, most int64) int64 {
	steps := int64(max(connections-memoryConnections, 0)+memorySteps-1) / memorySteps
	return min(memoryLimit+steps*memorySteps*memoryPerConnection, most)
}

// releaseCheck is for how long the program has to have been calm before it gives memory
// back to the system.
const releaseCheck = 10 * time.Second

// releaseMemory gives back what is free, until the end of ctx: after a storm of calls
// there may be no collection for minutes that would find it.
func releaseMemory(ctx context.Context) {
	check := time.NewTicker(releaseCheck)
	defer check.Stop()
	for before, released := collections(), uint64(0); ; {
		select {
		case <-check.C:
		case <-ctx.Done():
			return
		}
		now := collections()
		if now == before && now != released {
			debug.FreeOSMemory()
			now = collections()
			released = now
		}
		before = now
	}
}

// collections is how many of garbage there have been.
func collections() uint64 {
	cycles := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(cycles)
	return cycles[0].Value.Uint64()
}

// memoryOfContainer is what there is to take, as it was when it was asked first.
var memoryOfContainer = sync.OnceValue(func() int64 {
	return containerLimit("/proc/self/cgroup", "/sys/fs/cgroup")
})

// httpWithin is how many connections there may be in so much memory.
func httpWithin(most int64) int {
	return int(min(most/memoryPerHTTP, flakehttp.MaxConnections+flakehttp.SpareConnections))
}

// containerLimit is nine tenths of what the control groups of this process, and those
// above them, may take; without any there is no limit.
func containerLimit(self, root string) int64 {
	most := int64(math.MaxInt64)
	groups, _ := os.ReadFile(self) // there is none but on Linux
	for line := range strings.Lines(string(groups)) {
		group := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path: cgroups(7)
		if len(group) != 3 {
			continue
		}
		tree, file := root, "memory.max"
		if group[1] != "" { // of version 1
			tree, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		if group[1] != "" && group[1] != "memory" {
			continue
		}
		for dir := filepath.Clean("/" + group[2]); ; dir = filepath.Dir(dir) {
			text, _ := os.ReadFile(filepath.Join(tree, dir, file))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				most = min(most, n/10*9)
			}
			if dir == "/" {
				break
			}
		}
	}
	return most
}
