package flake

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"time"
)

func TestIDParts(t *testing.T) {
	parts := func(milli uint64, worker Worker, sequence uint16) bool {
		id := Make(milli, worker, sequence)
		return id.Milli() == milli && id.Worker() == worker&MaxWorker && id.Sequence() == sequence
	}
	if err := quick.Check(parts, nil); err != nil {
		t.Error(err)
	}
}

func TestIDTime(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_999_999, time.UTC)
	if got := Notional(at).Time(); !got.Equal(at.Truncate(time.Millisecond)) || got.Location() != time.UTC {
		t.Errorf("the time %v round-trips to %v", at, got)
	}
	last := time.UnixMilli(math.MaxInt64)
	if got := Make(math.MaxUint64, 0, 0).Time(); !got.Equal(last) {
		t.Errorf("the last id's time is %v, want %v", got, last)
	}
}

func TestCompareIsNumeric(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]ID, 500)
	for i := range ids { // few values, so that each part is sometimes equal
		ids[i] = Make(rng.Uint64N(4), Worker(rng.Uint64N(4)), uint16(rng.Uint64N(4)))
	}
	slices.SortFunc(ids, ID.Compare)
	for i := 1; i < len(ids); i++ {
		a, b := ids[i-1], ids[i]
		if a.Milli() > b.Milli() ||
			a.Milli() == b.Milli() && a.Worker() > b.Worker() ||
			a.Milli() == b.Milli() && a.Worker() == b.Worker() && a.Sequence() > b.Sequence() {
			t.Errorf("%v sorts before %v", a, b)
		}
		if (a == b) != (a.Compare(b) == 0) {
			t.Errorf("%v and %v compare as %d", a, b, a.Compare(b))
		}
	}
}

func TestSpan(t *testing.T) {
	first := time.UnixMilli(1_700_000_000_000)
	last := first.Add(time.Second)
	low, high := Span(first, last)
	for _, c := range []struct {
		id     ID
		inside bool
	}{
		{Make(1_700_000_000_000, 0, 0), true},
		{Make(1_700_000_001_000, MaxWorker, 65535), true},
		{Make(1_699_999_999_999, MaxWorker, 65535), false},
		{Make(1_700_000_001_001, 0, 0), false},
	} {
		if got := low.Compare(c.id) <= 0 && c.id.Compare(high) <= 0; got != c.inside {
			t.Errorf("%v inside the span: %v", c.id, got)
		}
	}
	if low != Notional(first) {
		t.Errorf("the lowest id is %v, want the notional id", low)
	}
	if got := Notional(time.UnixMilli(-1)); got != (ID{}) {
		t.Errorf("Notional before 1970: %v", got)
	}
}
