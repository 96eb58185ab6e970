//go:build !unix

package loadgen

import "time"

// processorTime returns 0: the time is unknown.
func processorTime() time.Duration { return 0 }
