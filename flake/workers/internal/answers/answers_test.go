package answers

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	var h History[int]
	errOther := errors.New("other")
	note := func(before Seen[int], sign string, err error) error {
		return h.Note(before, func(n *int) (string, error) {
			*n++
			return sign, err
		})
	}
	first, err := h.Before()
	if err != nil || first.Facts != 0 {
		t.Error(first, err)
	}
	if err := note(first, "", nil); err != nil {
		t.Error(err)
	}
	if err := note(first, "", errOther); err != errOther {
		t.Error(err)
	}
	if sign, ok := h.Restored(); sign != "" || ok {
		t.Errorf("sign %q", sign)
	}
	if before, err := h.Before(); err != nil || before.Facts != 2 || before.Restores != 0 {
		t.Error(before, err)
	}
	if err := note(first, "lower", nil); !errors.Is(err, ErrRestored) {
		t.Error(err)
	}
	if err := note(first, "higher", nil); !errors.Is(err, ErrRestored) {
		t.Error("after the sign:", err)
	}
	if _, err := h.Before(); !errors.Is(err, ErrRestored) {
		t.Error("after the sign:", err)
	}
	for _, want := range []string{"lower", ""} {
		if sign, ok := h.Restored(); sign != want || ok != (want != "") {
			t.Errorf("sign %q, want %q", sign, want)
		}
	}
	if before, err := h.Before(); err != nil || before.Facts != 0 || before.Restores != 1 {
		t.Error(before, err)
	}
	if err := note(first, "", nil); !errors.Is(err, ErrRestored) {
		t.Error("the answer to an earlier request:", err)
	}
}

// Of the offsets that the duration of the request and the unit of the date allow, Clocks returns the one
// nearest to zero.
func TestClocks(t *testing.T) {
	const date = 1_700_000_000_000
	for _, tt := range []struct {
		asked, answered uint64
		want            time.Duration
	}{
		{date, date, 0},
		{date + 1000, date + 1000, 0},
		{date + 1001, date + 1001, time.Millisecond},
		{date + 61000, date + 65000, time.Minute},
		{date - 1, date - 1, -time.Millisecond},
		{date - 1, date, 0},
		{date - 64000, date - 60000, -time.Minute},
	} {
		now := tt.asked
		got := Clocks([]int64{date}, time.Second, func() uint64 { return now }, func(date int64) time.Time {
			now = tt.answered
			return time.UnixMilli(date)
		})
		if !slices.Equal(got, []time.Duration{tt.want}) {
			t.Errorf("asked %d ms after the date: %v, want %v", int64(tt.asked)-date, got, tt.want)
		}
	}
}

func TestClocksOfAll(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	dates := []time.Time{now.Add(-time.Hour), {}, now.Add(time.Hour), now}
	got := Clocks(dates, time.Second, func() uint64 { return uint64(now.UnixMilli()) },
		func(date time.Time) time.Time { return date })
	slices.Sort(got)
	if want := []time.Duration{-time.Hour, 0, time.Hour - time.Second}; !slices.Equal(got, want) {
		t.Errorf("ahead by %v, want %v", got, want)
	}
}
