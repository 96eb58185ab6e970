package idhttp

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/idserver/inspect"
)

// inspection is the form for decoding an id, with its result.
type inspection struct {
	ID, Base, Generator string // as given
	Bases               []string
	Fault               string
	Reading             *reading
}

// reading is a decoded id, in the form that the page shows.
type reading struct {
	As        string // how the text was read
	Generator string // the generator that may have made the id; empty if there is only one generator
	Fields    []part
	Octets    []octet
	Texts     []inspect.Text
	Others    []other // other ways to read the text
}

// part is a field of an id. Its Index determines the color of its bits.
type part struct {
	Index             int
	Name, Value, Note string
	Bits              string
}

type octet struct {
	Hex  string
	Bits [8]bit
}

type bit struct {
	Index int // of the part
	One   bool
}

// other is another way to read the text: as an id with a likely time.
type other struct{ As, Generator, Time, URL string }

// inspect reads the values in the form. An empty value counts as not given.
func (d *Door) inspect(p parameters, now time.Time) *inspection {
	v := &inspection{ID: p["id"], Base: p["base"], Generator: p["generator"]}
	maps.DeleteFunc(p, func(_, value string) bool { return value == "" })
	for base := 62; base >= 2; base-- {
		v.Bases = append(v.Bases, strconv.Itoa(base))
	}
	v.Bases = append(v.Bases, formats.BaseNames(formatsOf(d.Generators)...)[1:]...) // not canonical, the default
	asked, fault := d.asked(p)
	if fault == nil && v.ID != "" {
		var base int
		if base, fault = baseOf(p, formatsOf(asked)...); fault == nil {
			v.read(d.Generators, asked, base, now)
		}
	}
	if fault != nil {
		v.Fault = fault.Detail
	}
	return v
}

// read decodes the id, even if the generator or the base is not given, and finds other
// ways to read it, as an id of any generator.
func (v *inspection) read(all, asked []Generator, base int, now time.Time) {
	text := inspect.Trim(v.ID)
	readings := inspect.Read(makersOf(all), text, base, v.Base == "", now)
	best := slices.IndexFunc(readings, func(r inspect.Reading) bool {
		return len(asked) > 1 || all[r.Maker].Name == asked[0].Name
	})
	if best < 0 {
		what := strings.TrimSuffix(textsOf(asked, base), ", or in another base if base is given")
		v.Fault = fmt.Sprintf("%s is not %s", quote(text), what)
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
	parts := make([]int, bits)
	for i, f := range format.Fields(id) {
		p := part{Index: i, Name: f.Name, Bits: inspect.Bits(f)}
		p.Value, p.Note = inspect.Value(f, now)
		v.Fields = append(v.Fields, p)
		for b := f.Offset; b < min(f.Offset+f.Width, bits); b++ {
			parts[b] = i
		}
	}
	for i, b := range id.AppendOctets(nil, format.Size) {
		o := octet{Hex: fmt.Sprintf("%02x", b)}
		for j := range o.Bits {
			o.Bits[j] = bit{parts[8*i+j], b<<j&0x80 != 0}
		}
		v.Octets = append(v.Octets, o)
	}
	return v
}
