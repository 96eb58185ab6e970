package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node/reserve"
)

// The limit of Go's memory is above what the node may hold, by the limits that
// SECURITY.md lists. Near it garbage is collected at once, so that what hostile peers
// throw away does not add up; were it below what is in use, the collector would do
// nothing else. So it grows with the connections.
const (
	memoryLimit         = 80 << 20 // with memoryConnections or fewer: 44 MiB shared, and theirs
	memoryConnections   = 1024
	memoryPerConnection = 32 << 10 // what one may hold of its own
	memoryPerTLS        = 64 << 10 // and TLS for it
	memorySteps         = 256
	memoryCheck         = time.Second

	// memoryPerHTTP is of what there is for all: most of it is for others.
	memoryPerHTTP = 512 << 10
)

// boundMemory keeps the limit until the end of ctx. It leaves it to whoever has set
// Go's own.
func boundMemory(ctx context.Context, connections func() int, tls bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	most := reserve.Memory()
	set := int64(0)
	for check := time.NewTicker(memoryCheck); ; {
		if want := memoryFor(connections(), most, tls); want != set {
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

// memoryFor returns the limit with so many connections, in steps, as a new one stops the
// program for a moment.
func memoryFor(connections int, most int64, tls bool) int64 {
	steps := int64(max(connections-memoryConnections, 0)+memorySteps-1) / memorySteps
	want := memoryLimit + steps*memorySteps*memoryPerConnection
	if tls {
		want += int64(connections/memorySteps) * memorySteps * memoryPerTLS
	}
	return min(want, most)
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

// httpWithin is how many connections there may be in so much memory.
func httpWithin(most int64) int {
	return int(min(most/memoryPerHTTP, idhttp.MaxConnections+idhttp.SpareConnections))
}
