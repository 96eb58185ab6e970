package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/internal/escape"
)

// ErrNoneFree means that all numbers have an owner.
var ErrNoneFree = errors.New("flake: no worker id is free")

// Entry is a number and its value in the store.
type Entry struct {
	Number uint64
	Value
	text string
}

// table is the content of the store at a point in time.
type table struct {
	keys    keys
	entries map[uint64]Entry
	used    map[uint64]uint64 // the numbers that were ever claimed, and the hold of the last claim, in ms
	floor   Floor
	now     uint64 // the time of the claim, by the node's clock
}

// empty reports whether no number was ever claimed.
func (t *table) empty() bool { return len(t.entries)+len(t.used) == 0 && t.floor == Floor{} }

// pass sets the time of the claim to now. If a claim at that time would enter a number's spent
// period, pass raises the number's mark to the end of that period.
func (t *table) pass(now, hold uint64) {
	t.now = now
	for n, e := range t.entries {
		if e.Spent.meets(now, hold) {
			e.Mark, e.Spent = max(e.Mark, e.Spent.Mark), Span{}
			t.entries[n] = e
		}
	}
}

// List returns the entries of a store under prefix, sorted by number.
func List(ctx context.Context, s Store, prefix string) ([]Entry, error) {
	t, err := read(ctx, s, keys{prefix})
	if err != nil {
		return nil, err
	}
	return t.sorted(func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) }), nil
}

// ReadFloor returns the floor of a store under prefix, or the zero Floor.
func ReadFloor(ctx context.Context, s Store, prefix string) (Floor, error) {
	key := keys{prefix}.floor()
	texts, err := s.Get(ctx, key)
	if err != nil {
		return Floor{}, err
	}
	f, err := parseFloor(texts[0])
	if err != nil {
		return f, foreign(key, texts[0])
	}
	return f, nil
}

func read(ctx context.Context, s Store, k keys) (t table, err error) {
	t = table{keys: k, entries: make(map[uint64]Entry), used: make(map[uint64]uint64)}
	// The reads need not be atomic, because every write compares what it depends on.
	if t.floor, err = ReadFloor(ctx, s, k.prefix); err != nil {
		return t, err
	}
	used, err := s.List(ctx, k.allUsed())
	if err != nil {
		return t, err
	}
	for key, text := range used {
		n, err := k.parse(key, keys.used)
		var hold uint64
		fmt.Sscanf(text, version+" %d", &hold) // the comparison detects failures
		if err != nil || usedText(hold) != text {
			return t, foreign(key, text)
		}
		t.used[n] = hold
	}
	all, err := s.List(ctx, k.numbers())
	if err != nil {
		return t, err
	}
	for key, text := range all {
		n, keyErr := k.parse(key, keys.number)
		v, err := parseValue(text)
		if keyErr != nil || err != nil {
			return t, foreign(key, text)
		}
		t.entries[n] = Entry{n, v, text}
	}
	return t, nil
}

func foreign(key, text string) error {
	return fmt.Errorf("%w: %s has the unknown value %q, perhaps from a later version of flake; "+
		"delete it if nothing uses it, or give all nodes of the fleet a different prefix",
		ErrRefused, escape.Text(key), text[:min(len(text), 24)])
}

func (t table) sorted(compare func(a, b Entry) int) []Entry {
	return slices.SortedFunc(maps.Values(t.entries), compare)
}

// noneFree returns an error that names the owners of the numbers from first to last. Each of these
// numbers must have an entry.
func (t table) noneFree(first, last uint64) error {
	const maxNamed = 8
	all := slices.DeleteFunc(t.sorted(byMark), func(e Entry) bool { return e.Number < first || e.Number > last })
	var owners []string
	for _, e := range all[:min(len(all), maxNamed)] {
		owners = append(owners, fmt.Sprintf("%d by %s until %s", e.Number, e.Name, show(e.Mark)))
	}
	if len(all) > maxNamed {
		owners = append(owners, fmt.Sprintf("and %d more", len(all)-maxNamed))
	}
	return fmt.Errorf("%w from %d to %d; the first may be free at %s; held: %s",
		ErrNoneFree, first, last, show(all[0].Mark), strings.Join(owners, ", "))
}

var show = tick.Text
