package idserver

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/snowflake"
)

// An id is written in one text a base, and read in all the texts that there are of it.
func TestParse(t *testing.T) {
	want := Number{0x1a1fb17587b, 0x7a0078ffe3d40000} // README.md's example
	octets := string(want.AppendOctets(nil, 16))
	for base, text := range map[int]string{
		Octets: octets, Canonical: "0000BCeaFSZg0hpyLH1rPs", 62: "BCeaFSZg0hpyLH1rPs", 16: "1A1FB17587B7A0078FFE3D40000",
	} {
		expect(t, text)(string(AppendID(nil, FlakeFormat, want, base)), nil)
	}
	for _, test := range []struct {
		base  int
		texts string
		ok    bool
	}{
		{Canonical, `0000BCeaFSZg0hpyLH1rPs 000001a1-fb17-587b-7a00-78ffe3d40000 1a1fb17587b7a0078ffe3d40000 000001A1FB17587B7A0078FFE3D40000 ` +
			`0x1a1fb17587b7a0078ffe3d40000 0x1A1FB17587B7A0078FFE3D40000 \x000001a1fb17587b7a0078ffe3d40000`, true},
		{Octets, octets + " 0000BCeaFSZg0hpyLH1rPs 000001a1-fb17-587b-7a00-78ffe3d40000", true},
		{62, "BCeaFSZg0hpyLH1rPs 0000BCeaFSZg0hpyLH1rPs", true},
		{16, "1A1FB17587B7A0078FFE3D40000 1a1fb17587b7a0078ffe3d40000 0x1a1fb17587b7a0078ffe3d40000", true},
		{Canonical, `1 BCeaFSZg0hpyLH1rPs zzzzzzzzzzzzzzzzzzzzzz 000001a1-fb17-587b-7a00-78ffe3d4000 \x1a1fb17587b7a0078ffe3d40000 ` + octets, false},
		{Octets, octets[1:] + " " + octets + "\x00", false},
		{62, "_ -1 +1 zzzzzzzzzzzzzzzzzzzzzz", false},
		{1, "1", false},
	} {
		for text := range strings.SplitSeq(test.texts, " ") {
			id, err := Parse(FlakeFormat, text, test.base)
			if test.ok && (err != nil || id != want) || !test.ok && err != ErrBadArgument {
				t.Errorf("%q in %d: %v, %v", text, test.base, id, err)
			}
		}
	}
}

// Ids of 64 bits have the texts of bwmarrin/snowflake, which no others have.
func TestTexts(t *testing.T) {
	want, f := Number{Lo: 911723800210665477}, SnowflakeFormat(snowflake.Twitter)
	for name, text := range map[string]string{
		"canonical": "911723800210665477", "base32": "3jaz6h6pghyf", "base36": "6xd743nuhrlx", "base58": "37KkmdM8XfV", "base64": "OTExNzIzODAwMjEwNjY1NDc3",
	} {
		base, ok := BaseOf(name)
		id, err := Parse(f, text, base)
		if got := string(AppendID(nil, f, want, base)); !ok || got != text || id != want || err != nil || !HasBase(f, base) || !slices.Contains(NamesOf(f), name) {
			t.Errorf("%s: %s, want %s, and back %v, %v", name, got, text, id, err)
		}
		if name != "canonical" && (NameOf(base) != name || HasBase(SnoFormat, base) || Width(f, base) != len(AppendID(nil, f, highest(8), base))) {
			t.Errorf("%s: %s, %d wide", name, NameOf(base), Width(f, base))
		}
		if id, err := Parse(SnoFormat, text, base); name != "canonical" && err != ErrBadArgument {
			t.Errorf("%s of sno: %v, %v", name, id, err)
		}
		if id, err := Parse(f, "!", base); err != ErrBadArgument {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	for _, name := range []string{"", "base62", "BASE32", "62"} {
		if base, ok := BaseOf(name); ok {
			t.Errorf("%q is %d", name, base)
		}
	}
	if names := NamesOf(FlakeFormat); len(names) != 1 || NameOf(62) != "base 62" || !HasBase(FlakeFormat, 62) {
		t.Errorf("%s, %s", names, NameOf(62))
	}
}

// A number is of 128 bits.
func TestNumber(t *testing.T) {
	if got, want := (Number{1, math.MaxUint64}).Plus(2), (Number{2, 1}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, f := range []Format{FlakeFormat, SnoFormat, SnowflakeFormat(snowflake.Twitter), UUIDv7Format, ULIDFormat} {
		digits := strings.Repeat("F", 2*f.Size())
		want := numberOf(strings.Repeat("\xff", f.Size()))
		if f == UUIDv7Format { // whose version and variant are fixed
			digits = "FFFFFFFFFFFF7FFFBFFFFFFFFFFFFFFF"
			want = Number{math.MaxUint64 &^ 0x8000, math.MaxUint64 &^ (1 << 62)}
		}
		if got, err := Parse(f, digits, 16); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", f.Name(), got, err, want)
		}
		if got, err := Parse(f, "1"+strings.Repeat("0", 2*f.Size()), 16); err != ErrBadArgument {
			t.Errorf("%s: %v, %v", f.Name(), got, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("digits of base 1")
		}
	}()
	Number{}.AppendDigits(nil, 1)
}
