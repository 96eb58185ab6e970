//go:build !linux

package systemd

import "time"

// monotonic is for systemd, which is only on Linux.
func monotonic() time.Duration { return 0 }
