package tick

import (
	"testing"
	"time"
)

// forwardOf returns a ForwardClock that reads the given clocks.
func forwardOf(wall, mono *time.Duration) Clock {
	return startClock(&systemClock{
		every: int64(time.Millisecond),
		wall:  func() int64 { return int64(*wall) },
		mono:  func() int64 { return int64(*mono) },
		slept: func() int64 { return 0 },
	}).onlyForward()
}

// The clock never goes back, however the wall clock is set.
func TestForwardClock(t *testing.T) {
	wall, mono := time.Hour, time.Duration(0)
	clock := forwardOf(&wall, &mono)
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
			t.Errorf("at %v, %v the clock says %d, want %v", tt.wall, tt.mono, got, tt.want)
		}
	}
}

func TestForwardClockBefore1970(t *testing.T) {
	wall, mono := -time.Hour, time.Duration(0)
	clock := forwardOf(&wall, &mono)
	for _, mono = range []time.Duration{0, time.Second} {
		if got := clock(); got != uint64(mono.Milliseconds()) {
			t.Errorf("after %v the clock says %d", mono, got)
		}
	}
}
