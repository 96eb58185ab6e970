package tick

import "golang.org/x/sys/unix"

// slept returns the time in ns that the machine has slept since it was booted. While it
// sleeps, monotonic time stands still, but wall time does not.
func slept() int64 {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return all.Nano() - awake.Nano()
}
