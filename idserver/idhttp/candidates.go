package idhttp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/idserver"
)

// candidate is one way to read a text as an id.
type candidate struct {
	g      *Generator
	text   string // in the base
	base   int
	as     string // the same in words
	number idserver.Number
	milli  uint64 // of the id, since 1970
	likely bool   // that there are ids of that time
	rank   int    // low is good
}

// What a candidate's rank is more by if another has made the id, and if its time is
// not a likely one.
const (
	foreign  = 100
	unlikely = 1000
)

// usual are the bases that ids are mostly written in.
var usual = []int{62, 36, 16, 10, 32, 58, 2}

// candidatesOf reads a text as an id of each of the generators, the likeliest first:
// of a likely time, then made by the generator itself, then in a text of its format's
// own, then in a usual base. With guess digits may be of any base.
func candidatesOf(all []Generator, text string, base int, guess bool, now time.Time) []candidate {
	bases := []int{base}
	if octets, ok := fromErlang(text); ok && base == idserver.Canonical {
		text, bases, guess = octets, []int{idserver.Octets}, false
	}
	if guess {
		for base := 2; base <= 62; base++ {
			bases = append(bases, base)
		}
	}
	var found []candidate
	for i := range all {
		for _, base := range bases {
			if c, ok := all[i].candidate(text, base, now); ok {
				found = append(found, c)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
	return found
}

func (g *Generator) candidate(text string, base int, now time.Time) (c candidate, ok bool) {
	format := g.format()
	number, err := idserver.Parse(format, text, base)
	if err != nil || base == idserver.Octets && len(text) != format.Size() {
		return c, false
	}
	c = candidate{g: g, text: text, base: base, number: number}
	switch base {
	case idserver.Octets:
		c.as = "an Erlang binary"
	case idserver.Canonical:
		c.as = format.Name() + "'s own text"
		if _, err := format.Parse(text); err != nil {
			c.as = "hexadecimal"
		}
	default:
		c.as = "base " + strconv.Itoa(base)
		if c.rank = 1 + slices.Index(usual, base); c.rank == 0 {
			c.rank = 1 + len(usual)
		}
	}
	fields := format.Fields(number)
	who := uint64(0)
	for _, f := range whoOf(fields) {
		who = who<<f.Width | f.Value
	}
	if who != g.Server.IDs.Worker() {
		c.rank += foreign
	}
	c.milli = fields[0].Value
	if c.likely = likely(c.milli, now); !c.likely {
		c.rank += unlikely
	}
	return c, true
}

// whoOf are those of an id's fields that tell who has made it.
func whoOf(fields []idserver.Field) (who []idserver.Field) {
	for _, f := range fields {
		switch f.Name {
		case "datacenter", "worker", "machine", "partition":
			who = append(who, f)
		}
	}
	return who
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
