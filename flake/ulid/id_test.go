package ulid

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
)

// The spec's example.
func TestSpec(t *testing.T) {
	id := MustParse("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	if id.UUID() != "01563e3a-b5d3-d676-4c61-efb99302bd5b" || id.Milli() != 1469922850259 ||
		id.Time().UnixMilli() != 1469922850259 {
		t.Errorf("%v is %s, with the time %v", id, id.UUID(), id.Time())
	}
	if id.Sequence() != 0xd676 || id.Worker() != 0x4c61efb99302 || id.Random() != 0xbd5b {
		t.Errorf("%v of worker %v: %#x, %#x", id, id.Worker(), id.Sequence(), id.Random())
	}
	if got, err := id.AppendText([]byte("x")); string(got) != "x"+id.String() || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if lower, err := Parse("01arz3ndektsv4rrffq69g5fav"); lower != id || err != nil {
		t.Errorf("%v, %v, want %v", lower, err, id)
	}
	highest := MustParse("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	if highest.Milli() != MaxMilli || highest.UUID() != "ffffffff-ffff-ffff-ffff-ffffffffffff" {
		t.Errorf("the highest id is %s", highest.UUID())
	}
	if lowest := MustParse("00000000000000000000000000"); !lowest.IsZero() {
		t.Errorf("the lowest id is %s", lowest.UUID())
	}
}

func TestMake(t *testing.T) {
	id, err := Make(0x0123456789ab, 0xcba987654321, 0xcdef, 0x3579)
	if want := "01234567-89ab-cdef-cba9-876543213579"; id.UUID() != want || err != nil {
		t.Errorf("%s, %v, want %s", id.UUID(), err, want)
	}
	if id, err := Make(MaxMilli+1, 0, 0, 0); err == nil || !id.IsZero() {
		t.Errorf("Make accepts a time beyond 48 bits: %v", id)
	}
}

func TestParse(t *testing.T) {
	id := New()
	own := id.String()
	for _, text := range []string{own, strings.ToLower(own)} {
		if got, err := Parse(text); got != id || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	with := func(at int, digit string) string { return own[:at] + digit + own[at+1:] }
	bad := map[string]int{
		"":                           0,
		own[1:]:                      0,
		own + "0":                    0,
		id.UUID():                    0,
		"80000000000000000000000000": 0,
		"ZZZZZZZZZZZZZZZZZZZZZZZZZZ": 0,
		strings.Repeat("0", 10_000):  0,
		with(25, "\xff"):             25,
		with(10, "-"):                10,
		with(10, "@"):                10,
		with(10, "`"):                10,
	}
	bad[with(24, "é")] = 0 // too long by a byte
	for _, none := range "ILOUilou" {
		bad[with(13, string(none))] = 13
	}
	for text, at := range bad {
		var where *flake.ParseError
		if got, err := Parse(text); !errors.As(err, &where) || where.At != at || !got.IsZero() || len(err.Error()) > 250 {
			t.Errorf("%q: %v, %v, want an error at %d", text, got, err, at)
		}
	}
}

func TestSQL(t *testing.T) {
	id := New()
	if v, err := id.Value(); v != id.String() || err != nil {
		t.Errorf("value %v, %v", v, err)
	}
	for _, src := range []any{id.UUID(), []byte(id.UUID()), id[:], [16]byte(id), id.String(), []byte(id.String())} {
		var got ID
		if err := got.Scan(src); got != id || err != nil {
			t.Errorf("scanned %v: %v, %v", src, got, err)
		}
	}
	for _, src := range []any{strings.Repeat("0", 36), []byte(strings.Repeat("x", 36)), id[:15]} {
		got := id
		if err := got.Scan(src); err == nil || got != id {
			t.Errorf("scanned %v: %v, %v", src, got, err)
		}
	}
}

func TestSpan(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	low, high := Span(at, at)
	if low.String() != "01HF7YAT000000000000000000" || high.String() != "01HF7YAT00ZZZZZZZZZZZZZZZZ" ||
		low != Notional(at) {
		t.Errorf("%v to %v", low, high)
	}
}

// Each byte of an id's text must be a digit, in either case.
func TestParseDigits(t *testing.T) {
	const text = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for at := range len(text) {
		for c := range 256 {
			other := text[:at] + string([]byte{byte(c)}) + text[at+1:]
			allowed := strings.IndexByte(crockford+strings.ToLower(crockford), byte(c)) >= 0 && (at > 0 || c <= '7')
			if id, err := Parse(other); (err == nil) != allowed || allowed && id.String() != strings.ToUpper(other) {
				t.Errorf("%q: %s, %v", other, id, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Add("7zzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			return
		}
		if id.String() != strings.ToUpper(text) {
			t.Errorf("%q round-trips to %v", text, id)
		}
		if again, err := Make(id.Milli(), id.Worker(), id.Sequence(), id.Random()); again != id || err != nil {
			t.Errorf("%v round-trips to %v, %v", id, again, err)
		}
	})
}
