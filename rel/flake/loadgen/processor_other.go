//go:build !unix

package loadgen

import "time"

// processorTime returns 0, because the processor time cannot be measured here.
func processorTime() time.Duration { return 0 }
