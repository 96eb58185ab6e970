package tick

import (
	"testing"
	"time"
)

// The clock never goes back, however the wall clock is set.
func TestForwardClock(t *testing.T) {
	wall, mono := time.Hour, time.Duration(0)
	clock := forwardClock(func() int64 { return int64(mono) }, func() (int64, int64) { return int64(wall), int64(mono) })
	for _, tt := range []struct{ wall, mono, want time.Duration }{
		{time.Hour, 0, time.Hour},
		{time.Hour + time.Second, time.Second, time.Hour + time.Second},
		{time.Minute, 2 * time.Second, time.Hour + 2*time.Second}, // set back
		{-time.Hour, 3 * time.Second, time.Hour + 3*time.Second},  // before 1970
		{2 * time.Minute, time.Minute, time.Hour + time.Minute},
		{3 * time.Hour, time.Minute + time.Millisecond - 1, time.Hour + time.Minute}, // not read again yet
		{3 * time.Hour, time.Minute + time.Millisecond, 3 * time.Hour},               // set ahead
		{3*time.Hour + time.Second, time.Minute + time.Second + time.Millisecond, 3*time.Hour + time.Second},
		{3 * time.Hour, 3 * time.Minute, 3*time.Hour + 2*time.Minute - time.Millisecond}, // set back
	} {
		wall, mono = tt.wall, tt.mono
		if got := clock(); got != uint64(tt.want.Milliseconds()) {
			t.Errorf("at %v, %v the clock gives %d, want %v", tt.wall, tt.mono, got, tt.want)
		}
	}
}

func TestForwardClockBefore1970(t *testing.T) {
	mono := time.Duration(0)
	read := func() (int64, int64) { return -int64(time.Hour), int64(mono) }
	clock := forwardClock(func() int64 { return int64(mono) }, read)
	for _, mono = range []time.Duration{0, time.Second} {
		if got := clock(); got != uint64(mono.Milliseconds()) {
			t.Errorf("after %v the clock gives %d", mono, got)
		}
	}
}
