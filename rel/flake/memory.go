package main

import (
	"os"
	"runtime/debug"
)

// memoryLimit is above what the node may hold, by the limits that SECURITY.md
// lists, with a thousand callers. Near it garbage is collected at once, so that
// what hostile peers throw away does not add up. It is soft: who has more callers
// pays with some time of the processor.
const memoryLimit = 56 << 20

// boundMemory leaves the limit to whoever has set Go's own.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
