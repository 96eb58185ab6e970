//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package reserve

import (
	"syscall"
	"testing"
)

// atMost limits the process to n descriptors until the test ends.
func atMost(t *testing.T, n int) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	now := old
	now.Cur = 0
	for range n { // the type of Cur differs between systems
		now.Cur++
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) })
}

func TestEnough(t *testing.T) {
	atMost(t, Needed)
	if err := Enough(0); err != nil {
		t.Error(err)
	}
	if Enough(1) == nil {
		t.Error("Enough(1) returned no error")
	}
}

func TestQuarter(t *testing.T) {
	for ceiling, want := range map[int]int{20: 20, (Needed - Kept) / 4: 32, 512: 32} {
		atMost(t, Needed)
		if got := Quarter(ceiling); got != want {
			t.Errorf("Quarter is %d for a ceiling of %d, want %d", got, ceiling, want)
		}
	}
	for others, want := range map[int]int{20: Needed - Kept - 20, 512: Needed - Kept - 32} {
		if got := Rest(others); got != want {
			t.Errorf("%d of %d others leave %d, want %d", Quarter(others), others, got, want)
		}
	}
	atMost(t, Kept/2)
	if got := Quarter(512); got != 1 {
		t.Errorf("Quarter is %d for a limit below Kept, want 1", got)
	}
}
