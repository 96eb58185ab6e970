package node

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/node/etf"
)

// idRun is a run of ids as numbers made of time and sequence. All have the same worker.
type idRun struct{ from, to uint64 }

func runOf(id flake.ID, count int) (idRun, error) {
	from := id.Milli()<<16 | uint64(id.Sequence())
	r := idRun{from, from + uint64(count) - 1}
	if count < 1 || r.to>>16 != r.from>>16 || id.Worker() != 1 {
		return r, fmt.Errorf("not ids: %v and %d after it", id, count-1)
	}
	return r, nil
}

// ledger holds all ids so far, and detects duplicates.
type ledger struct {
	mu    sync.Mutex
	runs  []idRun
	known int // number of runs that are sorted and unique
	total uint64
	twice []idRun
}

func (l *ledger) add(runs ...idRun) {
	const many = 1 << 20
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, runs...)
	if len(l.runs) > 2*l.known+many {
		l.sort()
	}
}

// sort sorts runs and joins adjacent ones.
func (l *ledger) sort() {
	slices.SortFunc(l.runs, func(a, b idRun) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	var joined []idRun
	for _, r := range l.runs {
		last := len(joined) - 1
		switch {
		case last >= 0 && r.from <= joined[last].to:
			l.twice = append(l.twice, r)
		case last >= 0 && r.from == joined[last].to+1:
			joined[last].to = r.to
		default:
			joined = append(joined, r)
		}
	}
	l.runs, l.known = joined, len(joined)
	l.total = 0
	for _, r := range joined {
		l.total += r.to - r.from + 1
	}
}

func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.sort()
	if len(l.twice) > 0 {
		t.Errorf("%d runs of ids were sent twice; the first is %+v", len(l.twice), l.twice[0])
	}
}

// asked describes a request for ids.
type asked int

const (
	askedGet asked = iota
	askedMany
	askedBinary
	askedLease
)

// readIDs reads an answer {ok, Ids}. Ids are text if base is not 0.
func readIDs(a asked, base int, reply []byte) (runs []idRun, err error) {
	r := etf.NewReader(reply)
	arity, word := r.Tuple(), string(r.Atom())
	if arity != 2 || word != "ok" {
		return nil, fmt.Errorf("not ids: %s", etf.FormatRaw(nil, reply, 200))
	}
	add := func(id flake.ID, count int) {
		run, failed := runOf(id, count)
		if err == nil {
			err = failed
		}
		runs = append(runs, run)
	}
	one := func() flake.ID {
		if base == 0 {
			return idOf(r.Binary())
		}
		id, failed := flake.ParseBase(string(r.StringExt()), base)
		if err == nil {
			err = failed
		}
		return id
	}
	switch a {
	case askedGet:
		add(one(), 1)
	case askedMany:
		for range r.ListHeader() {
			add(one(), 1)
		}
		r.Nil()
	case askedBinary:
		for id := range slices.Chunk(r.Binary(), len(flake.ID{})) {
			add(idOf(id), 1)
		}
	case askedLease:
		for range r.ListHeader() {
			r.Tuple()
			id := one()
			add(id, int(r.Int()))
		}
		r.Nil()
	}
	if failed := r.Finish(); failed != nil {
		return nil, failed
	}
	return runs, err
}

// idOf returns the id in b. If b does not have the size of an id, it returns the zero id, which
// runOf refuses.
func idOf(b []byte) (id flake.ID) {
	if len(b) == len(id) {
		id = flake.ID(b)
	}
	return id
}

func count(runs []idRun) (n int) {
	for _, r := range runs {
		n += int(r.to - r.from + 1)
	}
	return n
}
