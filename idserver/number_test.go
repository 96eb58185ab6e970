package idserver

import (
	"math"
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

// A number is of 128 bits.
func TestNumber(t *testing.T) {
	if got, want := (Number{1, math.MaxUint64}).Plus(2), (Number{2, 1}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, f := range []Format{FlakeFormat, SnoFormat, SnowflakeFormat(snowflake.Twitter)} {
		digits := strings.Repeat("F", 2*f.Size())
		want := numberOf(strings.Repeat("\xff", f.Size()))
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
