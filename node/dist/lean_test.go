package dist

import "testing"

// Remaining entries stay, whatever has gone, and what has gone leaves little.
func TestLean(t *testing.T) {
	var l lean[int, int]
	const n = 10 * leanFew
	for i := range n {
		l.set(i, -i)
	}
	for i := range n {
		l.remove(i)
		if i := i + 1; i < n && l.all[i] != -i || len(l.all) != n-i {
			t.Fatalf("%d left of %d", len(l.all), n-i)
		}
	}
	if l.most > leanFew {
		t.Errorf("as large as for %d", l.most)
	}
	l.set(1, 1)
	l.shrink()
	if l.all[1] != 1 || l.idle() != 0 {
		t.Errorf("%v, %d bytes idle", l.all, l.idle())
	}
}
