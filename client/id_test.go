package client

import (
	"math"
	"slices"
	"testing"
)

func TestRun(t *testing.T) {
	low := Run[[8]byte]{[8]byte{7: 254}, 4}
	want := [][8]byte{{7: 254}, {7: 255}, {6: 1}, {6: 1, 7: 1}}
	if got := slices.Collect(low.All()); !slices.Equal(got, want) {
		t.Error(got)
	}
	for i := range want {
		if got := low.At(i); got != want[i] {
			t.Errorf("%d: %v, want %v", i, got, want[i])
		}
	}
	carry := Run[[10]byte]{[10]byte{1: 9, 2: 255, 3: 255, 4: 255, 5: 255, 6: 255, 7: 255, 8: 255, 9: 255}, 2}
	if got := carry.At(1); got != [10]byte{1: 10} {
		t.Error(got)
	}
	second := Run[[16]byte]{[16]byte{7: 1}, 2}
	if got := second.At(1); got != [16]byte{7: 1, 15: 1} {
		t.Error(got)
	}
	for range low.All() {
		break
	}
}

func TestBelow(t *testing.T) {
	ascending := []number{{0, 0}, {0, 1}, {0, math.MaxUint64}, {1, 0}, {1, 1}}
	for i, n := range ascending {
		for j, m := range ascending {
			if n.below(m) != (i < j) {
				t.Errorf("%v below %v: %v", n, m, n.below(m))
			}
		}
	}
}
