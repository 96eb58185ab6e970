package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
)

// A Maker is a generator, or only a format, that may have made an id.
type Maker struct {
	Format *formats.Format
	Worker func() uint64 // returns the generator's worker; nil if unknown
}

// A Reading is one way to read text as an id.
type Reading struct {
	Maker  int // the index of the Maker
	Format *formats.Format
	ID     formats.Number
	Text   string // the text that [formats.Format.Parse] reads in Base
	Base   int
	As     string // how the text was read, in words
	Milli  uint64 // the time of the id, in ms since 1970
	Likely bool   // whether Milli is a likely time
	rank   int    // lower means likelier
}

// These are added to the rank of a reading: foreign unless the id's worker is known to be the
// Maker's, and unlikely unless the id's time is likely.
const (
	foreign  = 100
	unlikely = 1000
)

// usual lists the usual bases of ids, the likeliest first.
var usual = []int{crockford, 62, 36, 16, 10, 32, 58, 2}

var crockford, _ = formats.BaseOf("crockford")

// Read reads text as an id of each of the makers. The likeliest readings come first: those
// with a likely time; among these, those with the maker's worker, then those in the format's own
// text, and then those in a usual base. If guess is set, the digits may be in any base.
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

// maxOthers limits the readings that Others returns.
const maxOthers = 4

// Others returns the readings that cast doubt on the one at index best.
func Others(all []Reading, best int) (others []Reading) {
	chosen := &all[best]
	for i, r := range all {
		switch {
		case len(others) == maxOthers || !r.Likely:
			return others
		case i == best || r.ID == chosen.ID && r.Milli == chosen.Milli && r.rank > chosen.rank: // the same id again
		case !chosen.InBase() && r.InBase() && r.rank >= foreign: // digits cast no doubt on a format's own text
		default:
			others = append(others, r)
		}
	}
	return others
}

// InBase reports whether the text consists of digits, which could be in another base.
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
		r.As = m.Format.ReadAs(text)
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

// likely reports whether a time is one at which ids may have been made: from 2000 to tomorrow.
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
