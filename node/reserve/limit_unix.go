//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package reserve

import (
	"math"
	"syscall"
)

// limit returns the current limit on descriptors, which an operator can change. Go raises
// it to the hard limit when the process starts.
func limit() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur)
}
