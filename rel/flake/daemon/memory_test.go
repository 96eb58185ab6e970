package daemon

import (
	"math"
	"testing"

	"github.com/flake-go/flake/config"
	"github.com/flake-go/flake/node"
)

// The limit grows with the number of connections, because the collector would run all the time if
// the limit were below what they hold. It is never above the container's limit.
func TestMemoryFor(t *testing.T) {
	for _, test := range []struct {
		connections     int
		tls             bool
		available, want int64
	}{
		{0, false, math.MaxInt64, 80 << 20},
		{1024, false, math.MaxInt64, 80 << 20},
		{1025, false, math.MaxInt64, 88 << 20},
		{4096, false, math.MaxInt64, 176 << 20},
		{4096, false, 100 << 20, 100 << 20},
		{255, true, math.MaxInt64, 80 << 20},
		{256, true, math.MaxInt64, 96 << 20},
		{4096, true, math.MaxInt64, 432 << 20},
	} {
		if got := memoryFor(test.connections, test.available, test.tls); got != test.want {
			t.Errorf("%d connections: %d, want %d", test.connections, got, test.want)
		}
	}
}

// The defaults of the configuration are the limits in SECURITY.md.
func TestDefaultConnections(t *testing.T) {
	if n := config.Default().Node; n.MaxConnections != node.MaxConnections || n.MaxConnectionsPerHost != node.MaxPerHost {
		t.Errorf("%d nodes, %d of one host, want %d and %d", n.MaxConnections, n.MaxConnectionsPerHost, node.MaxConnections,
			node.MaxPerHost)
	}
}

// There is memory to release after a collection, and when stacks have grown without one.
func TestReleasable(t *testing.T) {
	released := memoryUse{7, 5 << 20}
	for now, want := range map[memoryUse]bool{
		released: false, {8, 5 << 20}: true, {7, 5<<20 + releaseStacks}: false, {7,
			5<<20 + releaseStacks + 1}: true, {7, 0}: false,
	} {
		if got := now.releasable(released); got != want {
			t.Errorf("%+v after %+v: %t", now, released, got)
		}
	}
	if now := used(); now.stacks == 0 {
		t.Error("the size of all stacks is 0")
	}
}

func TestHTTPWithin(t *testing.T) {
	for memory, want := range map[int64]int{28 << 20: 56, 100 << 20: 200, math.MaxInt64: 768} {
		if got := httpWithin(memory); got != want {
			t.Errorf("%d: %d, want %d", memory, got, want)
		}
	}
}

// The configured limit on memory applies, unless the control groups' limit is lower.
func TestMemoryOf(t *testing.T) {
	for limit, less := range map[int64]bool{0: false, 64 << 20: true} {
		got := memoryOf(config.Node{MemoryLimit: limit})
		if (got == limit) != less {
			t.Errorf("%d: %d", limit, got)
		}
	}
}
