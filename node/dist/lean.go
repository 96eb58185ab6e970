package dist

import "maps"

// lean is a map that frees its memory when most of its entries are gone, as Go's maps
// do not.
type lean[K comparable, V any] struct {
	all  map[K]V
	most int // entries at most so far
}

const (
	leanFew   = 512 // so few are not worth the trouble
	leanEntry = 64  // bytes, about
)

func (l *lean[K, V]) set(k K, v V) {
	if l.all == nil {
		l.all = make(map[K]V)
	}
	l.all[k] = v
	l.most = max(l.most, len(l.all))
}

func (l *lean[K, V]) remove(k K) {
	delete(l.all, k)
	if l.most > leanFew && len(l.all) < l.most/8 {
		l.shrink()
	}
}

// shrink frees unused memory, if most of it is unused.
func (l *lean[K, V]) shrink() {
	if l.most <= 2*len(l.all) {
		return
	}
	all := make(map[K]V, len(l.all))
	maps.Copy(all, l.all)
	l.all, l.most = all, len(all)
}

// idle returns about how much memory it holds without use.
func (l *lean[K, V]) idle() int { return (l.most - len(l.all)) * leanEntry }
