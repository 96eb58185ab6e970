//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package reserve

import "math"

func limit() uint64 { return math.MaxUint64 }

func maxThreads() int64 { return math.MaxInt64 }
