package flakehttp

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/flakeserver"
)

// inspection is the form that takes an id apart, and what came of it.
type inspection struct {
	ID, Base, Generator string // as given
	Generators          []string
	Bases               []string
	Fault               string
	Reading             *reading
}

// reading is an id taken apart for people.
type reading struct {
	As     string // how the text was read
	Fields []part
	Octets []octet
	Texts  []labelled
	Others []other // what the text could be besides
}

// part is a field of an id; of the bits that are its own, Place tells the colour.
type part struct {
	Place             int
	Name, Value, Note string
	Bits              string
}

type octet struct {
	Hex  string
	Bits [8]bit
}

type bit struct {
	Place int
	One   bool
}

type labelled struct{ Name, Text string }

// other is another base in which the text is an id of a likely time.
type other struct{ Base, Time, URL string }

// inspect reads what the form holds. A value that is empty is none.
func (s *Server) inspect(r *http.Request, now time.Time) (*inspection, *problem) {
	p, fault := readParameters(r, []string{"id", "base", "generator"})
	if fault != nil {
		return nil, fault
	}
	v := &inspection{}
	for name, value := range map[string]*string{"id": &v.ID, "base": &v.Base, "generator": &v.Generator} {
		*value, _ = p.get(name)
		p.given[slices.Index(p.known, name)] = *value != ""
	}
	for i := range s.Generators {
		v.Generators = append(v.Generators, s.Generators[i].Name)
	}
	for base := 62; base >= 2; base-- {
		v.Bases = append(v.Bases, strconv.Itoa(base))
	}
	g, fault := s.generator(&p)
	if fault == nil && v.ID != "" {
		var base int
		if base, fault = baseOf(&p); fault == nil {
			v.read(g, base, now)
		}
	}
	if fault != nil {
		v.Fault = fault.Detail
	}
	return v, nil
}

// read takes the id apart, of which the base may not be known.
func (v *inspection) read(g *Generator, base int, now time.Time) {
	id := strings.Trim(strings.TrimSpace(v.ID), `"'`)
	if octets, ok := fromErlang(id); ok && base == flakeserver.Canonical && len(octets) == g.format().Size() {
		number, _ := flakeserver.Parse(g.format(), octets, flakeserver.Octets)
		v.Reading = g.reading(number, "an Erlang binary", now)
		return
	}
	number, err := flakeserver.Parse(g.format(), id, base)
	switch {
	case err == nil && base != flakeserver.Canonical:
		v.Reading = g.reading(number, "base "+v.Base, now)
	case err == nil:
		v.Reading = g.reading(number, g.format().Name()+"'s own text", now)
	case v.Base == "":
		v.guess(g, id, now)
	}
	if v.Reading == nil {
		v.Fault = fmt.Sprintf("%s is not %s", quote(id), strings.TrimSuffix(g.texts(base), ", or in a base that is given"))
	}
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

// usual are the bases that ids are mostly written in.
var usual = []int{62, 36, 16, 10, 32, 58, 2}

// guess reads digits whose base nobody has told: in the base in which the worker
// is ours, or else the time a likely one.
func (v *inspection) guess(g *Generator, id string, now time.Time) {
	type candidate struct {
		base, rank int
		time       uint64
		number     flakeserver.Number
	}
	var all []candidate
	for base := 2; base <= 62; base++ {
		number, err := flakeserver.Parse(g.format(), id, base)
		if err != nil {
			continue
		}
		milli, own := uint64(0), false
		for _, f := range g.format().Fields(number) {
			switch f.Name {
			case "time":
				milli = f.Value
			case "worker":
				own = f.Value == g.Server.IDs.Worker()
			}
		}
		c := candidate{base: base, time: milli, number: number, rank: slices.Index(usual, base)}
		if c.rank < 0 {
			c.rank = len(usual)
		}
		if !own {
			c.rank += 100
		}
		if !likely(milli, now) {
			c.rank += 1000
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
	v.Reading = g.reading(all[0].number, "base "+strconv.Itoa(all[0].base), now)
	const most = 4
	for _, c := range all[1:] {
		if len(v.Reading.Others) == most || !likely(c.time, now) {
			break
		}
		base := strconv.Itoa(c.base)
		query := url.Values{"id": {id}, "base": {base}}
		if v.Generator != "" {
			query.Set("generator", v.Generator)
		}
		v.Reading.Others = append(v.Reading.Others, other{
			base, time.UnixMilli(int64(c.time)).UTC().Format(time.DateOnly), "/?" + query.Encode() + "#inspector",
		})
	}
}

// likely tells whether ids may have been made at a time: from 2000 to tomorrow.
func likely(milli uint64, now time.Time) bool {
	first := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return milli >= uint64(first.UnixMilli()) && milli <= uint64(now.Add(24*time.Hour).UnixMilli())
}

func (g *Generator) reading(id flakeserver.Number, as string, now time.Time) *reading {
	format := g.format()
	v := &reading{As: as}
	bits := format.Size() * 8
	places := make([]int, bits)
	for i, f := range format.Fields(id) {
		v.Fields = append(v.Fields, partOf(i, f, now))
		for b := f.Offset; b < min(f.Offset+f.Width, bits); b++ {
			places[b] = i
		}
	}
	for i, b := range id.AppendOctets(nil, format.Size()) {
		o := octet{Hex: fmt.Sprintf("%02x", b)}
		for j := range o.Bits {
			o.Bits[j] = bit{places[8*i+j], b<<j&0x80 != 0}
		}
		v.Octets = append(v.Octets, o)
	}
	hex := fmt.Sprintf("%x", id.AppendOctets(nil, format.Size()))
	v.Texts = []labelled{{format.Name(), string(format.AppendCanonical(nil, id))}}
	if len(hex) == 32 {
		v.Texts = append(v.Texts, labelled{"UUID", hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]})
	}
	for _, base := range []int{62, 36, 16, 10} {
		v.Texts = append(v.Texts, labelled{"base " + strconv.Itoa(base), string(id.AppendDigits(nil, base))})
	}
	return v
}

func partOf(place int, f flakeserver.Field, now time.Time) part {
	p := part{
		Place: place, Name: f.Name, Value: strconv.FormatUint(f.Value, 10),
		Bits: fmt.Sprintf("%d bits, %d to %d", f.Width, f.Offset, f.Offset+f.Width-1),
	}
	switch {
	case f.Name == "time" && f.Value < uint64(min(endOfTime, math.MaxInt64)):
		t := time.UnixMilli(int64(f.Value)).UTC()
		p.Note = p.Value + " ms, "
		p.Value = t.Format("2006-01-02 15:04:05.000") + " UTC"
		if t.After(now) {
			p.Note += "in " + span(t.Sub(now))
		} else {
			p.Note += span(now.Sub(t)) + " ago"
		}
	case f.Name == "worker" && f.Width == 48:
		p.Note = p.Value
		p.Value = mac(f.Value)
	}
	return p
}
