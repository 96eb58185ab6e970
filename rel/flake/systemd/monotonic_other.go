//go:build !linux

package systemd

import "time"

// monotonic is used only for systemd, which runs only on Linux.
func monotonic() time.Duration { return 0 }
