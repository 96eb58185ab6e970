//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package reserve

import "math"

func limit() uint64 { return math.MaxUint64 }
