package duplicates

import "testing"

func TestSeen(t *testing.T) {
	s := newSeen(1000 << 16)
	for _, place := range []uint64{1000 << 16, 1000<<16 | 65535, 1001 << 16, 1001<<16 | 64} {
		if !s.add(t, place) || s.add(t, place) {
			t.Errorf("%#x is not told to be there twice", place)
		}
	}
}
