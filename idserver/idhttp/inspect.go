package idhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver/inspect"
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
	Texts     []inspect.Text
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
	v.Bases = append(v.Bases, namesOf(formatsOf(s.Generators))[1:]...) // not canonical, which is found out
	asked, fault := s.asked(&p)
	if fault == nil && v.ID != "" {
		var base int
		if base, fault = baseOf(&p, formatsOf(asked)...); fault == nil {
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
	readings := inspect.Read(makersOf(all), text, base, v.Base == "", now)
	best := slices.IndexFunc(readings, func(r inspect.Reading) bool { return len(asked) > 1 || all[r.Maker].Name == asked[0].Name })
	if best < 0 {
		v.Fault = fmt.Sprintf("%s is not %s", quote(text), strings.TrimSuffix(textsOf(asked, base), ", or in a base that is given"))
		return
	}
	r := readings[best]
	v.Reading = readingOf(r.Format, r.ID, now)
	v.Reading.As = r.As
	if len(all) > 1 {
		v.Reading.Generator = all[r.Maker].Name
	}
	for _, r := range inspect.Others(readings, best) {
		o := other{As: r.As, Time: time.UnixMilli(int64(r.Milli)).UTC().Format(time.DateOnly)}
		query := url.Values{"id": {text}}
		if r.InBase() {
			query.Set("base", strings.TrimPrefix(formats.NameOf(r.Base), "base "))
		}
		if len(all) > 1 {
			o.Generator = all[r.Maker].Name
			query.Set("generator", o.Generator)
		}
		o.URL = "/?" + query.Encode() + "#inspector"
		v.Reading.Others = append(v.Reading.Others, o)
	}
}

func readingOf(format *formats.Format, id formats.Number, now time.Time) *reading {
	v := &reading{Texts: inspect.Texts(format, id)}
	bits := format.Size * 8
	places := make([]int, bits)
	for i, f := range format.Fields(id) {
		p := part{Place: i, Name: f.Name, Bits: inspect.Bits(f)}
		p.Value, p.Note = inspect.Value(f, now)
		v.Fields = append(v.Fields, p)
		for b := f.Offset; b < min(f.Offset+f.Width, bits); b++ {
			places[b] = i
		}
	}
	for i, b := range id.AppendOctets(nil, format.Size) {
		o := octet{Hex: fmt.Sprintf("%02x", b)}
		for j := range o.Bits {
			o.Bits[j] = bit{places[8*i+j], b<<j&0x80 != 0}
		}
		v.Octets = append(v.Octets, o)
	}
	return v
}
