package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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

var crockford, _ = formats.BaseOf("crockford")

// usual lists the bases that are guessed, the likeliest first: those in which ids are usually written.
var usual = slices.Concat([]int{crockford, 62, 36, 16, 10, 32, 58},
	slices.DeleteFunc(formats.TextBases(), func(base int) bool { return base == crockford }))

// Read reads text as an id of each of the makers. The likeliest readings come first: those
// with a likely time; among these, those with the maker's worker, then those in the format's own
// text, and then those in a usual base. Without a base, text that is more likely something else than
// an id is not read. If no reading is found and guess is set, the digits may be in any usual base.
func Read(all []Maker, text string, base int, guess bool, now time.Time) (found []Reading) {
	if octets, ok := fromErlang(text); ok && base == formats.Canonical {
		text, base, guess = octets, formats.Octets, false
	}
	for i := range all {
		if r, ok := all[i].read(text, base, now); ok && (base != formats.Canonical || !r.other()) {
			r.Maker = i
			found = append(found, r)
		}
	}
	if len(found) == 0 && guess {
		for _, base := range usual {
			found = append(found, slices.DeleteFunc(Read(all, text, base, false, now), Reading.word)...)
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
		default:
			others = append(others, r)
		}
	}
	return others
}

// word reports whether a guess is probably wrong: its time is not likely, or on the format's first
// day, as it is for any short word read as digits.
func (r Reading) word() bool {
	const day = 24 * time.Hour / time.Millisecond
	return !r.Likely || r.Milli-r.Format.Fields(formats.Number{})[0].Value < uint64(day)
}

// other reports whether text whose base is not known is something else than an id: hexadecimal digits without
// a prefix, such as an ObjectId or a hash, or a UUID of a version that ids of the format do not have.
func (r *Reading) other() bool {
	if r.As == "hexadecimal" {
		return r.word() && !strings.HasPrefix(r.Text, "0x") && !strings.HasPrefix(r.Text, `\x`)
	}
	version := r.ID.Hi >> 12 & 15
	return !r.Likely && strings.Contains(r.Text, "-") && r.Format.Name != "uuidv7" &&
		1 <= version && version <= 8 && r.ID.Lo>>62 == 2
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

// Trim returns text without spaces, quotation marks and byte order marks around it.
func Trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'\ufeff", r) })
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
