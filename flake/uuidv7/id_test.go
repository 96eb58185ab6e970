package uuidv7

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

// The example of RFC 9562, appendix A.6.
func TestRFC(t *testing.T) {
	id := MustParse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
	if at := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC); !id.Time().Equal(at) || id.Milli() != 0x17f22e279b0 {
		t.Errorf("%v, want %v", id.Time(), at)
	}
	if id.Sequence() != 0xcc3 || id.String() != "017f22e2-79b0-7cc3-98c4-dc0c0c07398f" {
		t.Errorf("%v has the sequence %#x", id, id.Sequence())
	}
	if got, err := id.AppendText([]byte("x")); string(got) != "x"+id.String() || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	// The 62 bits of rand_b are 0x18C4DC0C0C07398F.
	if id.Worker() != 0x18c4dc0c0c07398f>>14 || id.Random() != 0x398f {
		t.Errorf("%v has worker %v and random bits %#x", id, id.Worker(), id.Random())
	}
}

func TestMake(t *testing.T) {
	id, err := Make(0x0123456789ab, 0xcba987654321, 0xdef, 0x3579)
	if want := "01234567-89ab-7def-b2ea-61d950c87579"; id.String() != want || err != nil {
		t.Errorf("%v, %v, want %s", id, err, want)
	}
	if id, err := Make(MaxMilli+1, 0, 0, 0); err == nil || !id.IsZero() {
		t.Errorf("Make accepts a time beyond 48 bits: %v", id)
	}
}

func TestParse(t *testing.T) {
	id := New()
	own := id.String()
	for _, text := range []string{own, strings.ToUpper(own), "{" + own + "}", "urn:uuid:" + own,
		strings.ToUpper("urn:uuid:" + own)} {
		if got, err := Parse(text); got != id || err != nil || Validate(text) != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := Parse(Max.String()); got != Max || err != nil || got.Compare(id) <= 0 {
		t.Errorf("the max UUID: %v, %v", got, err)
	}
	if got, err := Parse(ID{}.String()); !got.IsZero() || err != nil {
		t.Errorf("the nil UUID: %v, %v", got, err)
	}
	with := func(at int, digit string) string { return own[:at] + digit + own[at+1:] }
	for text, at := range map[string]int{
		"":                                     0,
		own[1:]:                                0,
		"{" + own + ")":                        0,
		"(" + own + "}":                        0,
		"uuid:urn:" + own:                      0,
		"{" + with(14, "4") + "}":              15,
		"urn:uuid:" + with(19, "0"):            28,
		strings.ReplaceAll(own, "-", ""):       0,
		flake.ID(id).String():                  0,
		with(8, "0"):                           8,
		with(35, "g"):                          35,
		with(14, "4"):                          14,
		with(14, "8"):                          14,
		with(14, "0"):                          14,
		with(19, "0"):                          19,
		with(19, "7"):                          19,
		with(19, "c"):                          19,
		with(19, "f"):                          19,
		strings.Repeat("f", 10_000):            0,
		"ffffffff-ffff-ffff-ffff-fffffffffffe": 14,
		"00000000-0000-0000-0000-000000000001": 14,
	} {
		var where *flake.ParseError
		if got, err := Parse(text); !errors.As(err, &where) || where.At != at || !got.IsZero() || len(err.Error()) > 250 ||
			Validate(text) == nil || strings.Contains(where.What, "base 62") { // which is of flake
			t.Errorf("%q: %v, %v, want an error at %d", text, got, err, at)
		}
	}
}

// However an id is read, it must be a version 7 UUID; otherwise the id is unchanged.
func TestVersion(t *testing.T) {
	four := flake.ID(MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))
	four[6] = 0x4c
	wide := four
	wide[6], wide[8] = 0x7c, 0xc8
	for _, bad := range []flake.ID{four, wide, flake.Make(1_700_000_000_000, 1, 1)} {
		id := New()
		kept := id
		short, _ := bad.Text(62)
		_, err := ParseBase(short, 62)
		_, none := ParseBase("", 62)
		for what, err := range map[string]error{
			"text": id.UnmarshalText([]byte(bad.UUID())), "bytes": id.UnmarshalBinary(bad[:]), "a number": err,
			"empty text": none, "15 bytes": id.UnmarshalBinary(kept[1:]),
			"a column": id.Scan(bad.UUID()), "its bytes": id.Scan(bad[:]), "an array": id.Scan([16]byte(bad)),
		} {
			if !errors.As(err, new(*flake.ParseError)) || id != kept {
				t.Errorf("%s of %s: %v, %v", what, bad.UUID(), id, err)
			}
		}
	}
}

func TestSQL(t *testing.T) {
	id := New()
	if v, err := id.Value(); v != id.String() || err != nil {
		t.Errorf("value %v, %v", v, err)
	}
	for _, src := range []any{id[:], [16]byte(id), []byte(id.String())} {
		var got ID
		if err := got.Scan(src); got != id || err != nil {
			t.Errorf("scanned %v: %v, %v", src, got, err)
		}
	}
}

func TestSpan(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	low, high := Span(at, at)
	if low.String() != "018bcfe5-6800-7000-8000-000000000000" ||
		high.String() != "018bcfe5-6800-7fff-bfff-ffffffffffff" || low != Notional(at) {
		t.Errorf("%v to %v", low, high)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
	f.Add(ID{}.String())
	f.Add("{" + Max.String() + "}")
	f.Add("urn:uuid:" + Max.String())
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			return
		}
		own := strings.ToLower(text[len(text)-36:])
		if text[0] == '{' {
			own = strings.ToLower(text[1:37])
		}
		special := id.IsZero() || id == Max
		if id.String() != own || !special && (own[14] != '7' || !strings.Contains("89ab", own[19:20])) {
			t.Errorf("%q round-trips to %v", text, id)
		}
		if again, err := Make(id.Milli(), id.Worker(), id.Sequence(), id.Random()); err != nil || again != id && !special {
			t.Errorf("%v round-trips to %v, %v", id, again, err)
		}
		if data, err := id.MarshalBinary(); err != nil || !bytes.Equal(data, id[:]) {
			t.Errorf("%v is %x, %v", id, data, err)
		}
	})
}
