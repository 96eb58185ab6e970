package formats

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Append writes an id in one form per base. Parse reads every text form of an id.
func TestParse(t *testing.T) {
	want := Number{0x1a1fb17587b, 0x7a0078ffe3d40000} // README.md's example
	octets := string(want.AppendOctets(nil, 16))
	for base, text := range map[int]string{
		Octets: octets, Canonical: "0000BCeaFSZg0hpyLH1rPs", 62: "BCeaFSZg0hpyLH1rPs", 16: "1A1FB17587B7A0078FFE3D40000",
	} {
		if got := string(flakeFormat.Append(nil, want, base)); got != text {
			t.Errorf("in base %d %q, want %q", base, got, text)
		}
	}
	for _, test := range []struct {
		base  int
		texts string
		ok    bool
	}{
		{Canonical, `0000BCeaFSZg0hpyLH1rPs 000001a1-fb17-587b-7a00-78ffe3d40000 1a1fb17587b7a0078ffe3d40000 ` +
			`000001A1FB17587B7A0078FFE3D40000 ` +
			`0x1a1fb17587b7a0078ffe3d40000 0x1A1FB17587B7A0078FFE3D40000 \x000001a1fb17587b7a0078ffe3d40000`, true},
		{Octets, octets + " 0000BCeaFSZg0hpyLH1rPs 000001a1-fb17-587b-7a00-78ffe3d40000", true},
		{62, "BCeaFSZg0hpyLH1rPs 0000BCeaFSZg0hpyLH1rPs", true},
		{16, "1A1FB17587B7A0078FFE3D40000 1a1fb17587b7a0078ffe3d40000 0x1a1fb17587b7a0078ffe3d40000", true},
		{Canonical, `1 BCeaFSZg0hpyLH1rPs zzzzzzzzzzzzzzzzzzzzzz 000001a1-fb17-587b-7a00-78ffe3d4000 ` +
			`\x1a1fb17587b7a0078ffe3d40000 ` + octets, false},
		{Octets, octets[1:] + " " + octets + "\x00", false},
		{62, "_ -1 +1 zzzzzzzzzzzzzzzzzzzzzz", false},
		{1, "1", false},
		{Canonical - 1 - len(texts), "1", false},
	} {
		for text := range strings.SplitSeq(test.texts, " ") {
			id, err := flakeFormat.Parse(text, test.base)
			if test.ok && (err != nil || id != want) || !test.ok && err != errText {
				t.Errorf("%q in %d: %v, %v", text, test.base, id, err)
			}
		}
	}
}

// Only 64-bit ids have the text forms of bwmarrin/snowflake.
func TestTexts(t *testing.T) {
	want, f := Number{Lo: 911723800210665477}, SnowflakeFormat(snowflake.Twitter)
	for name, text := range map[string]string{
		"canonical": "911723800210665477", "base32": "3jaz6h6pghyf", "base36": "6xd743nuhrlx", "base58": "37KkmdM8XfV",
		"base64": "OTExNzIzODAwMjEwNjY1NDc3",
	} {
		base, ok := BaseOf(name)
		id, err := f.Parse(text, base)
		if got := string(f.Append(nil, want, base)); !ok || got != text || id != want || err != nil || !f.HasBase(base) ||
			!slices.Contains(BaseNames(f), name) {
			t.Errorf("%s: %s, want %s, and back %v, %v", name, got, text, id, err)
		}
		if name != "canonical" &&
			(NameOf(base) != name || snoFormat.HasBase(base) || f.Width(base) != len(f.Append(nil, highest(8), base))) {
			t.Errorf("%s: %s, %d wide", name, NameOf(base), f.Width(base))
		}
		if id, err := snoFormat.Parse(text, base); name != "canonical" && err != errText {
			t.Errorf("%s of sno: %v, %v", name, id, err)
		}
		if id, err := f.Parse("!", base); err != errText {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	if id, err := f.Parse("0000000000000000000000000a", Canonical); id != (Number{Lo: 10}) || err != nil {
		t.Errorf("hexadecimal with zeros: %v, %v", id, err)
	}
	for _, name := range []string{"", "base62", "BASE32", "62"} {
		if base, ok := BaseOf(name); ok {
			t.Errorf("%q is accepted as the base %d", name, base)
		}
	}
	if names := BaseNames(snoFormat, flakeFormat); strings.Join(names, " ") != "canonical uuid crockford" ||
		NameOf(62) != "base 62" || !flakeFormat.HasBase(62) {
		t.Errorf("%s, %s", names, NameOf(62))
	}
}

// In each format, all Crockford strings have the same width, sort as the ids do, and are read in
// either case. For 128-bit ids, Parse with Canonical reads them too.
func TestCrockford(t *testing.T) {
	base, _ := BaseOf("crockford")
	for _, k := range Kinds {
		f := k.Format(options(k))
		low, high, err := f.Span(f.Fields(Number{})[0].Value+1e11, 17e11)
		if err != nil {
			t.Fatal(err)
		}
		width, last := len(f.Append(nil, high, base)), ""
		for _, id := range []Number{low, f.AtOrdinal(f.Ordinal(low).Plus(1)), high} {
			text := string(f.Append(nil, id, base))
			if len(text) != width || width != f.Width(base) || text <= last ||
				strings.ContainsAny(text, "ILOUabcdefghijklmnopqrstuvwxyz") {
				t.Errorf("%s: %s after %s, in %d digits", f, text, last, width)
			}
			last = text
			for _, text := range []string{text, strings.ToLower(text)} {
				if got, err := f.Parse(text, base); got != id || err != nil {
					t.Errorf("%s: %s is %v, %v, want %v", f, text, got, err, id)
				}
				if got, err := f.Parse(text, Canonical); f.Size == 16 && (got != id || err != nil) {
					t.Errorf("%s: %s without a base is %v, %v, want %v", f, text, got, err, id)
				}
			}
		}
		for _, wrong := range []string{last[1:], "0" + last, "Z" + last[1:], last[1:] + "I", last[1:] + "L", last[1:] + "O",
			last[1:] + "U", ""} {
			allowed := strings.HasPrefix(wrong, "Z") && f == snoFormat // sno's 80 bits fill 16 digits
			if id, err := f.Parse(wrong, base); err == nil && !allowed {
				t.Errorf("%s: %s is %v", f, wrong, id)
			}
		}
	}
	for text, as := range map[string]string{
		"00000T3YRQB1XQM03RZZHX8000": "crockford", "00000t3yrqb1xqm03rzzhx8000": "crockford",
		"00000000000000000000000abc": "crockford",
		"1A1FB17587B7A0078FFE3D4000": "hexadecimal", "0x1A1FB17587B7A0078FFE3D40": "hexadecimal", "0x11": "hexadecimal",
		"0000BCeaFSZg0hpyLH1rPs": "flake's own text",
	} {
		if _, err := flakeFormat.Parse(text, Canonical); err != nil || flakeFormat.ReadAs(text) != as {
			t.Errorf("%s: %v, read as %s", text, err, flakeFormat.ReadAs(text))
		}
	}
}

// Only ids of 128 bits have the form of a UUID.
func TestUUID(t *testing.T) {
	const text = "018bcfe5-6800-702a-8080-00000000491e"
	base, _ := BaseOf("uuid")
	for _, k := range Kinds {
		f := k.Format(options(k))
		id, err := f.Parse(text, base)
		switch {
		case f.HasBase(base) != (f.Size == 16) || f.HasBase(base) != (err == nil):
			t.Errorf("%s: %v", f, err)
		case err == nil && string(f.Append(nil, id, base)) != text:
			t.Errorf("%s: %s", f, f.Append(nil, id, base))
		}
		if id, err := f.Parse("018bcfe5-6800-402a-8080-00000000491e", base); f == uuidv7Format && err == nil {
			t.Errorf("%s: a UUID of version 4 is read as %v", f, id)
		}
		if id, err := f.Parse(string(f.Append(nil, id, Canonical)), base); f != uuidv7Format && err == nil {
			t.Errorf("%s: its own text is read as the UUID %v", f, id)
		}
		if id, err := f.Parse("018bcfe56800702a80800000000049ie", base); err == nil {
			t.Errorf("%s: %v", f, id)
		}
	}
}

func TestAppendAllocates(t *testing.T) {
	f, dst := SnowflakeFormat(snowflake.Twitter), make([]byte, 0, MaxText)
	for _, base := range append(TextBases(), Canonical, 62) {
		for _, f := range []*Format{f, flakeFormat} {
			if n := testing.AllocsPerRun(100, func() { f.Append(dst, Number{Lo: 911723800210665477}, base) }); n != 0 {
				t.Errorf("%s of %s: %v allocations", NameOf(base), f, n)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	if got, want := (Number{1, math.MaxUint64}).Plus(2), (Number{2, 1}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, k := range Kinds {
		f := k.Format(options(k))
		_, want, err := f.Span(f.Times())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Parse(string(want.appendDigits(nil, 16)), 16); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", f.Name, got, err, want)
		}
		if got, err := f.Parse(string(want.Plus(1).appendDigits(nil, 16)), 16); f.Size < 16 && err != errText {
			t.Errorf("%s: above the highest: %v, %v", f.Name, got, err)
		}
		if got, err := f.Parse("1"+strings.Repeat("0", 2*f.Size), 16); err != errText {
			t.Errorf("%s: %v, %v", f.Name, got, err)
		}
	}
	for left := range 128 {
		one := Number{Lo: 1}.shifted(left)
		if want := new(big.Int).Lsh(big.NewInt(1), uint(left)).Text(62); string(one.appendDigits(nil, 62)) != swapCase(want) {
			t.Errorf("1 shifted left by %d is %v", left, one)
		}
		if back := one.shifted(-left); back != (Number{Lo: 1}) {
			t.Errorf("shifted left and right by %d: %v", left, back)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("base 1 does not panic")
		}
	}()
	Number{}.appendDigits(nil, 1)
}

// swapCase converts digits of package big, in which lower-case letters precede upper-case ones.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// The doors of a node, and the packages of the formats, read the texts in flake/testdata/read.tsv as
// the clients do.
func TestRead(t *testing.T) {
	packages := map[string]func(text string) (Number, error){
		"flake":     func(text string) (Number, error) { return ofText128(flake.Parse(text)) },
		"snowflake": func(text string) (Number, error) { return ofSnowflake(snowflake.Parse(text)) },
		"sno":       func(text string) (Number, error) { id, err := sno.Parse(text); return ofSno(id), err },
		"uuidv7":    func(text string) (Number, error) { return ofText128(uuidv7.Parse(text)) },
		"ulid":      func(text string) (Number, error) { return ofText128(ulid.Parse(text)) },
	}
	for _, v := range readVectors(t) {
		base, named := BaseOf(v.base)
		if !named {
			base, _ = strconv.Atoi(v.base)
		}
		id, err := v.format.Parse(v.text, base)
		hex, time := "-", "-"
		if err == nil {
			hex, time = fmt.Sprintf("%x", id.AppendOctets(nil, v.format.Size)), fmt.Sprint(v.format.Fields(id)[0].Value)
		}
		if hex != v.hex || time != v.time {
			t.Errorf("%s %q in %s: %s from %s, want %s from %s", v.format, v.text, v.base, hex, time, v.hex, v.time)
		}
		// The bytes of a number that is not an id are not an id either.
		number, err2 := parseDigits(v.text, base)
		if v.hex == "-" && err2 == nil && number.Compare(highest(v.format.Size)) <= 0 {
			if id, err := v.format.Parse(string(number.AppendOctets(nil, v.format.Size)), Octets); err == nil {
				t.Errorf("%s: the bytes of %s are the id %v", v.format, v.text, id)
			}
		}
		if parse := packages[v.format.Name]; base == Canonical && parse != nil {
			got, err := parse(v.text)
			if v.format.Size == 8 && err == nil { // any number is a snowflake.ID
				_, err = v.layout.Decompose(snowflake.ID(got.Lo))
			}
			if (err == nil) != (v.hex != "-") || err == nil && got != id {
				t.Errorf("package %s: %q is %v, %v, want %s", v.format, v.text, got, err, v.hex)
			}
		}
	}
}

type readVector struct {
	format     *Format
	layout     snowflake.Layout // if ids have 64 bits
	base, text string
	hex, time  string // of the id
}

func readVectors(t *testing.T) (all []readVector) {
	data, err := os.ReadFile("../testdata/read.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if line[0] == '#' {
			continue
		}
		c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		v := readVector{base: c[2], text: c[3], hex: c[4], time: c[5], format: KindOf(c[0]).Format(nil)}
		if c[1] != "-" {
			if _, err := fmt.Sscan(c[1], &v.layout.Time, &v.layout.Worker, &v.layout.Sequence, &v.layout.Epoch); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			v.format = SnowflakeFormat(v.layout)
		}
		all = append(all, v)
	}
	return all
}
