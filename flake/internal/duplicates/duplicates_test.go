package duplicates

import "testing"

func TestSeen(t *testing.T) {
	s := new(seen)
	for _, place := range []uint64{1000 << 16, 1000<<16 | 65535, 1001 << 16, 1001<<16 | 64} {
		if !s.add(place) || s.add(place) {
			t.Errorf("only the second %#x must be a duplicate", place)
		}
	}
}
