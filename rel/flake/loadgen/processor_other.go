//go:build !unix

package loadgen

import "time"

// processorTime is not known.
func processorTime() time.Duration { return 0 }
