package dist

import (
	"slices"

	"github.com/flake-go/flake/node/etf"
)

// spawnFlags reads the options of a spawn, of which link and monitor have an effect
// here. If they are not ok, OTP answers badopt.
func spawnFlags(options []byte) (flags int64, ok bool) {
	term, _ := etf.Decode(options)
	list, ok := etf.Elements(term)
	if !ok {
		return 0, false
	}
	for _, o := range list {
		pair, _ := o.(etf.Tuple)
		switch {
		case o == etf.Atom("link"):
			flags |= spawnedLink
		case o == etf.Atom("monitor"):
			flags |= spawnedMonitor
		case len(pair) != 2 || !fitsOption(pair[0], pair[1]):
			return 0, false
		case pair[0] == etf.Atom("monitor"):
			flags |= spawnedMonitor
		}
	}
	return flags, true
}

// fitsOption reports whether OTP has a spawn option of this name and value.
func fitsOption(name, value etf.Term) bool {
	number, isNumber := value.(int64)
	word, _ := value.(etf.Atom)
	switch name {
	case etf.Atom("priority"):
		return slices.Contains([]etf.Atom{"low", "normal", "high", "max"}, word)
	case etf.Atom("message_queue_data"):
		return word == "off_heap" || word == "on_heap"
	case etf.Atom("async_dist"):
		return word == "true" || word == "false"
	case etf.Atom("min_heap_size"), etf.Atom("min_bin_vheap_size"), etf.Atom("fullsweep_after"), etf.Atom("scheduler"):
		return isNumber && number >= 0
	case etf.Atom("max_heap_size"):
		m, _ := value.(etf.Map)
		return isNumber && number >= 0 || slices.ContainsFunc(m, func(p etf.Pair) bool { return p.Key == etf.Atom("size") })
	case etf.Atom("monitor"):
		list, ok := etf.Elements(value)
		return ok && !slices.ContainsFunc(list, func(o etf.Term) bool {
			t, _ := o.(etf.Tuple)
			return len(t) != 2 || t[0] != etf.Atom("alias") && t[0] != etf.Atom("tag")
		})
	case etf.Atom("reply"), etf.Atom("reply_tag"):
		return true // on the caller's own node
	}
	return false
}
