package idhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/idserver"
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
	As        string // how the text was read
	Generator string // as whose; empty: there is but one
	Fields    []part
	Octets    []octet
	Texts     []labelled
	Others    []other // what the text could be besides
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

// other is another way to read the text, in which it is an id of a likely time.
type other struct{ As, Generator, Time, URL string }

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
	asked, fault := s.asked(&p)
	if fault == nil && v.ID != "" {
		var base int
		if base, fault = baseOf(&p); fault == nil {
			v.read(s.Generators, asked, base, now)
		}
	}
	if fault != nil {
		v.Fault = fault.Detail
	}
	return v, nil
}

// read takes the id apart, of which neither the generator nor the base may be known,
// and tells what else it may be of all that there are.
func (v *inspection) read(all, asked []Generator, base int, now time.Time) {
	text := strings.Trim(strings.TrimSpace(v.ID), `"'`)
	candidates := candidatesOf(all, text, base, v.Base == "", now)
	first := slices.IndexFunc(candidates, func(c candidate) bool { return len(asked) > 1 || c.g.Name == asked[0].Name })
	if first < 0 {
		v.Fault = fmt.Sprintf("%s is not %s", quote(text), strings.TrimSuffix(textsOf(asked, base), ", or in a base that is given"))
		return
	}
	best := candidates[first]
	v.Reading = best.g.reading(best.number, best.as, now)
	if len(all) > 1 {
		v.Reading.Generator = best.g.Name
	}
	const most = 4
	for i, c := range candidates {
		if len(v.Reading.Others) == most || !c.likely {
			break
		}
		if i == first || c.number == best.number && c.milli == best.milli && c.rank > best.rank {
			continue // the same once more
		}
		if best.base < 2 && c.base >= 2 && c.rank >= foreign {
			continue // digits of any base are no doubt about an own text
		}
		o := other{As: c.as, Time: time.UnixMilli(int64(c.milli)).UTC().Format(time.DateOnly)}
		query := url.Values{"id": {text}}
		if c.base >= 2 {
			query.Set("base", strconv.Itoa(c.base))
		}
		if len(all) > 1 {
			o.Generator = c.g.Name
			query.Set("generator", c.g.Name)
		}
		o.URL = "/?" + query.Encode() + "#inspector"
		v.Reading.Others = append(v.Reading.Others, o)
	}
}

func (g *Generator) reading(id idserver.Number, as string, now time.Time) *reading {
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

func partOf(place int, f idserver.Field, now time.Time) part {
	p := part{
		Place: place, Name: f.Name, Value: strconv.FormatUint(f.Value, 10),
		Bits: fmt.Sprintf("%d bits, %d to %d", f.Width, f.Offset, f.Offset+f.Width-1),
	}
	switch {
	case f.Name == "time" && f.Value < uint64(endOfTime):
		t := time.UnixMilli(int64(f.Value)).UTC()
		p.Note = p.Value + " ms, "
		p.Value = t.Format("2006-01-02 15:04:05.000") + " UTC"
		// Not by Sub, which tells no more than 292 years.
		if ahead := t.UnixMilli() - now.UnixMilli(); ahead > 0 {
			p.Note += "in " + span(ahead)
		} else {
			p.Note += span(-ahead) + " ago"
		}
	case f.Width == 48:
		p.Note = p.Value
		p.Value = mac(f.Value)
	}
	return p
}
