package iderl

import (
	"time"

	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// fleetOf returns what info tells of the fleet.
func fleetOf(f *idserver.Fleet) etf.List {
	workers := etf.List{}
	for _, w := range f.Workers {
		workers = append(workers, etf.Tuple{etf.Atom(w.Generator), etf.String(w.Kind), int64(w.First), int64(w.Last)})
	}
	since := int64(0)
	if !f.Since.IsZero() {
		since = f.Since.UnixMilli()
	}
	return etf.List{property("time", f.Time.UnixMilli()), property("since", since), property("workers", workers)}
}

// ReadFleet reads what info was answered with. It reports false for a node that does not
// tell of the fleet, or does not know info at all.
func ReadFleet(info etf.Term) (f idserver.Fleet, ok bool) {
	list, _ := info.(etf.List)
	values := make(map[etf.Atom]etf.Term)
	for _, p := range list {
		if p, _ := p.(etf.Tuple); len(p) == 2 {
			name, _ := p[0].(etf.Atom)
			values[name] = p[1]
		}
	}
	now, hasTime := values["time"].(int64)
	since, hasSince := values["since"].(int64)
	workers, hasWorkers := values["workers"].(etf.List)
	if f.Time = time.UnixMilli(now); since != 0 {
		f.Since = time.UnixMilli(since)
	}
	for _, t := range workers {
		t, _ := t.(etf.Tuple)
		if len(t) != 4 {
			return f, false
		}
		name, isName := t[0].(etf.Atom)
		kind, isKind := t[1].(etf.String)
		first, isFirst := t[2].(int64)
		last, isLast := t[3].(int64)
		if !isName || !isKind || !isFirst || !isLast {
			return f, false
		}
		f.Workers = append(f.Workers, idserver.Worker{
			Generator: string(name), Kind: string(kind), First: uint64(first), Last: uint64(last),
		})
	}
	return f, hasTime && hasSince && hasWorkers
}
