package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

// A Maker is what may have made an id.
type Maker struct {
	Format *formats.Format
	Worker func() uint64 // as whom it makes ids; nil: that is not known
}

// A Reading is one way to read a text as an id.
type Reading struct {
	Maker  int // the place of the one that has made it
	Format *formats.Format
	ID     formats.Number
	Text   string // what [formats.Format.Parse] reads, in the base
	Base   int
	As     string // how it was read, in words
	Milli  uint64 // of the id, since 1970
	Likely bool   // that there are ids of that time
	rank   int    // low is good
}

// What the rank is more by if another has made the id, or that is not known, and if its
// time is not a likely one.
const (
	foreign  = 100
	unlikely = 1000
)

// usual are the bases that ids are mostly written in.
var usual = []int{62, 36, 16, 10, 32, 58, 2}

// Read reads a text as an id of each of the makers, the likeliest first: of a likely
// time, then with the maker's own worker, then in a text of its format's own, then in a
// usual base. With guess digits may be of any base.
func Read(all []Maker, text string, base int, guess bool, now time.Time) []Reading {
	bases := []int{base}
	if octets, ok := fromErlang(text); ok && base == formats.Canonical {
		text, bases, guess = octets, []int{formats.Octets}, false
	}
	if guess {
		for base := 2; base <= 62; base++ {
			bases = append(bases, base)
		}
		bases = append(bases, formats.TextBases()...)
	}
	var found []Reading
	for i := range all {
		for _, base := range bases {
			if r, ok := all[i].read(text, base, now); ok {
				r.Maker = i
				found = append(found, r)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Reading) int { return cmp.Compare(a.rank, b.rank) })
	return found
}

// mostOthers is how many Others there are at most.
const mostOthers = 4

// Others are those of all readings that raise doubts about the one at place best.
func Others(all []Reading, best int) (others []Reading) {
	chosen := &all[best]
	for i, r := range all {
		switch {
		case len(others) == mostOthers || !r.Likely:
			return others
		case i == best || r.ID == chosen.ID && r.Milli == chosen.Milli && r.rank > chosen.rank: // the same once more
		case !chosen.InBase() && r.InBase() && r.rank >= foreign: // digits of any base are no doubt about an own text
		default:
			others = append(others, r)
		}
	}
	return others
}

// InBase tells whether it is of digits that could be of another base.
func (r *Reading) InBase() bool { return r.Base != formats.Octets && r.Base != formats.Canonical }

func (m *Maker) read(text string, base int, now time.Time) (r Reading, ok bool) {
	id, err := m.Format.Parse(text, base)
	if err != nil || base == formats.Octets && len(text) != m.Format.Size {
		return r, false
	}
	r = Reading{Format: m.Format, ID: id, Text: text, Base: base}
	switch base {
	case formats.Octets:
		r.As = "an Erlang binary"
	case formats.Canonical:
		r.As = "hexadecimal"
		if m.Format.IsOwn(text) {
			r.As = m.Format.Name + "'s own text"
		}
	default:
		r.As = formats.NameOf(base)
		if r.rank = 1 + slices.Index(usual, base); r.rank == 0 {
			r.rank = 1 + len(usual)
		}
	}
	fields := m.Format.Fields(id)
	who := uint64(0)
	for _, f := range formats.Who(fields) {
		who = who<<f.Width | f.Value
	}
	if m.Worker == nil || who != m.Worker() {
		r.rank += foreign
	}
	r.Milli = fields[0].Value
	if r.Likely = likely(r.Milli, now); !r.Likely {
		r.rank += unlikely
	}
	return r, true
}

// likely tells whether ids may have been made at a time: from 2000 to tomorrow.
func likely(milli uint64, now time.Time) bool {
	first := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return milli >= uint64(first.UnixMilli()) && milli <= uint64(now.Add(24*time.Hour).UnixMilli())
}

// fromErlang reads a binary as Erlang prints it: <<0,0,1>>.
func fromErlang(text string) (octets string, ok bool) {
	inner, ok := strings.CutPrefix(text, "<<")
	inner, closed := strings.CutSuffix(inner, ">>")
	if !ok || !closed {
		return "", false
	}
	var b []byte
	for element := range strings.SplitSeq(inner, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(element), 10, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(n))
	}
	return string(b), true
}
