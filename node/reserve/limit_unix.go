//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package reserve

import (
	"math"
	"syscall"
)

// limit returns how many descriptors the process may have now: an operator may change
// it. At the start Go has raised it to the hard limit.
func limit() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur)
}
