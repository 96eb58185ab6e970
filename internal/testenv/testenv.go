// Package testenv checks for what tests need besides Go. If something is missing, the test is skipped; under
// scripts/test, which sets ALL_TESTS, it fails.
package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// All reports whether every test must run.
func All() bool { return os.Getenv("ALL_TESTS") != "" }

// Need skips a test, or fails it under scripts/test, unless all programs are installed.
func Need(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			Missing(tb, err)
		}
	}
}

// Missing skips a test, or fails it under scripts/test, because of err.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if All() {
		tb.Fatalf("%v: scripts/test installs missing programs", err)
	}
	tb.Skip(err)
}
