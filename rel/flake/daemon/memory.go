package daemon

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/internal/cgroup"
)

// Go's memory limit is set above what the node may hold under the limits in SECURITY.md. Near
// the limit, Go collects garbage immediately, so garbage that hostile peers cause does not pile up. A
// limit below what is in use would keep the collector busy all the time, so the limit grows with
// the number of connections.
const (
	memoryLimit         = 80 << 20 // for up to memoryConnections: 44 MiB shared, and what each connection holds
	memoryConnections   = 1024
	memoryPerConnection = 32 << 10 // what each connection beyond memoryConnections may hold
	memoryPerTLS        = 64 << 10 // what TLS adds for each connection
	memorySteps         = 256
	memoryCheck         = time.Second

	// memoryPerHTTP is how much memory the node must have per HTTP connection; most of it is for other uses.
	memoryPerHTTP = 512 << 10
)

// memoryOf returns how much memory the node may use: nine tenths of what its control groups allow,
// or less if the configuration says so.
func memoryOf(cfg config.Node) int64 {
	usable := containerMemory() / 10 * 9
	if cfg.MemoryLimit > 0 {
		return min(cfg.MemoryLimit, usable)
	}
	return usable
}

// containerMemory returns what the control groups allowed at its first call.
var containerMemory = sync.OnceValue(cgroup.Memory)

// boundMemory adjusts Go's memory limit until ctx ends, unless GOMEMLIMIT is set.
func boundMemory(ctx context.Context, connections func() int, available int64, tls bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	set := int64(0)
	for check := time.Tick(memoryCheck); ; {
		if want := memoryFor(connections(), available, tls); want != set {
			debug.SetMemoryLimit(want)
			set = want
		}
		select {
		case <-check:
		case <-ctx.Done():
			return
		}
	}
}

// memoryFor returns the limit for a number of connections. The limit changes in steps, because
// each change stops the program for a moment.
func memoryFor(connections int, available int64, tls bool) int64 {
	steps := int64(max(connections-memoryConnections, 0)+memorySteps-1) / memorySteps
	want := memoryLimit + steps*memorySteps*memoryPerConnection
	if tls {
		want += int64(connections/memorySteps) * memorySteps * memoryPerTLS
	}
	return min(want, available)
}

const (
	// releaseCheck is the time without a collection after which free memory is returned to the
	// system.
	releaseCheck = 10 * time.Second

	// releaseStacks is the stack growth that makes a release worthwhile when no garbage was
	// collected: calls leave no garbage, but they double each connection's stack.
	releaseStacks = 1 << 20
)

// releaseMemory returns free memory to the system from time to time until ctx ends. Otherwise
// minutes may pass after a burst of calls before a collection frees memory.
func releaseMemory(ctx context.Context) {
	check := time.Tick(releaseCheck)
	for before, released := used(), (memoryUse{}); ; {
		select {
		case <-check:
		case <-ctx.Done():
			return
		}
		now := used()
		if now.cycles == before.cycles && now.releasable(released) {
			debug.FreeOSMemory()
			now = used()
			released = now
		}
		before = now
	}
}

// memoryUse is the number of garbage collections so far, and the size of all stacks in bytes.
type memoryUse struct{ cycles, stacks uint64 }

// releasable reports whether there may be memory to release: since the last release, garbage was
// collected or the stacks have grown by more than releaseStacks.
func (u memoryUse) releasable(released memoryUse) bool {
	return u.cycles != released.cycles || u.stacks > released.stacks+releaseStacks
}

func used() memoryUse {
	both := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(both)
	return memoryUse{both[0].Value.Uint64(), both[1].Value.Uint64()}
}

// httpWithin returns how many HTTP connections fit in an amount of memory.
func httpWithin(available int64) int {
	return int(min(available/memoryPerHTTP, idhttp.MaxConnections+idhttp.SpareConnections))
}
