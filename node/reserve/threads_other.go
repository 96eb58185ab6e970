//go:build !linux

package reserve

import "math"

func tasks() (own, left int64) { return 0, math.MaxInt64 }
