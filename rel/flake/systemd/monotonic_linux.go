package systemd

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time of CLOCK_MONOTONIC, of which a service manager has the same.
func monotonic() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails only for a clock that is not there
	return time.Duration(t.Nano())
}
