//go:build !linux

package main

import "time"

// monotonic is for systemd, which is only on Linux.
func monotonic() time.Duration { return 0 }
