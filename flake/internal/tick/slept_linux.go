package tick

import "golang.org/x/sys/unix"

// slept tells for how long the machine has been asleep since it was started, in
// ns: monotonic time stands still meanwhile, and wall time does not.
func slept() int64 {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return all.Nano() - awake.Nano()
}
