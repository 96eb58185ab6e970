package tick

import (
	"testing"
	"time"
)

// The clock never goes back, however the wall clock is set.
func TestForwardClock(t *testing.T) {
	var wall, mono time.Duration
	clock := forwardClock(func() (int64, int64) { return int64(wall), int64(mono) })
	for _, tt := range []struct{ wall, mono, want time.Duration }{
		{-time.Hour, 0, 0}, // before 1970
		{time.Hour, 0, time.Hour},
		{time.Hour + time.Second, time.Second, time.Hour + time.Second},
		{time.Minute, 2 * time.Second, time.Hour + 2*time.Second}, // set back
		{2 * time.Minute, time.Minute, time.Hour + time.Minute},
		{3 * time.Hour, 2 * time.Minute, 3 * time.Hour}, // set ahead
		{3*time.Hour + time.Second, 2*time.Minute + time.Second, 3*time.Hour + time.Second},
	} {
		wall, mono = tt.wall, tt.mono
		if got := clock(); got != uint64(tt.want.Milliseconds()) {
			t.Errorf("at %v, %v the clock gives %d, want %v", tt.wall, tt.mono, got, tt.want)
		}
	}
}
