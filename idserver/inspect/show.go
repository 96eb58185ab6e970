// Package inspect reads text as ids of any format, and formats ids for display. Start at [Read].
package inspect

import (
	"fmt"
	"strconv"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
)

// Parts is a decoded id, as JSON. Numbers are strings, because they may exceed 2^53.
type Parts struct {
	ID        string  `json:"id"` // the format's own text
	Format    string  `json:"format"`
	Generator string  `json:"generator,omitempty"` // the generator that may have made the id
	Time      string  `json:"time,omitempty"`      // RFC 3339, up to the year 9999
	Fields    []Field `json:"fields"`
}

// Field is a part of an id, like [formats.Field].
type Field struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Offset int    `json:"offset"` // the position of the first bit; the most significant bit of the id is 0
	Width  int    `json:"width"`  // in bits
}

// PartsOf decodes an id.
func PartsOf(f *formats.Format, id formats.Number) Parts {
	p := Parts{ID: string(f.Append(nil, id, formats.Canonical)), Format: f.Name}
	for _, f := range f.Fields(id) {
		if f.Name == "time" && f.Value < uint64(endOfTime) {
			p.Time = time.UnixMilli(int64(f.Value)).UTC().Format(time.RFC3339Nano)
		}
		p.Fields = append(p.Fields, Field{f.Name, strconv.FormatUint(f.Value, 10), f.Offset, f.Width})
	}
	return p
}

// endOfTime is the start of the year 10000, in ms since 1970. RFC 3339 cannot represent it.
var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// Value returns the value of a field for display, and a note, which may be empty.
func Value(f formats.Field, now time.Time) (value, note string) {
	value = strconv.FormatUint(f.Value, 10)
	switch {
	case f.Name == "time" && f.Value < uint64(endOfTime):
		t := time.UnixMilli(int64(f.Value)).UTC()
		note = value + " ms, "
		value = t.Format("2006-01-02 15:04:05.000") + " UTC"
		// t.Sub is limited to 292 years.
		if ahead := t.UnixMilli() - now.UnixMilli(); ahead > 0 {
			note += "in " + Span(ahead)
		} else {
			note += Span(-ahead) + " ago"
		}
	case f.Width == 48:
		return flake.Worker(f.Value).String(), value
	}
	return value, note
}

// Bits describes the bits of a field: how many, and where in the id.
func Bits(f formats.Field) string {
	switch f.Width {
	case 0:
		return "0 bits"
	case 1:
		return fmt.Sprintf("1 bit, %d", f.Offset)
	}
	return fmt.Sprintf("%d bits, %d to %d", f.Width, f.Offset, f.Offset+f.Width-1)
}

// A Text is a named text form of an id, such as its digits in base 62.
type Text struct{ Name, Text string }

// Texts returns an id's usual text forms, the format's own first.
func Texts(f *formats.Format, id formats.Number) []Text {
	canonical := string(f.Append(nil, id, formats.Canonical))
	all := []Text{{f.Name, canonical}}
	for _, base := range append([]int{62, 36, 16, 10}, formats.TextBases()...) {
		if !f.HasBase(base) {
			continue
		}
		if text := string(f.Append(nil, id, base)); text != canonical || base > 0 {
			all = append(all, Text{formats.NameOf(base), text})
		}
	}
	return all
}

// Span returns a number of milliseconds as text in its largest units, such as 3 h 12 min.
func Span(milli int64) string {
	milli = max(milli, 0)
	switch s := milli / 1000; {
	case s < 1:
		return fmt.Sprintf("%d ms", milli)
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	case s < 730*86400:
		return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
	default:
		return fmt.Sprintf("%.1f years", float64(s)/(365.25*86400))
	}
}
