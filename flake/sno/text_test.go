package sno

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
)

// alphabet and slowText define the text: groups of 5 bits, the most significant first.
const alphabet = "23456789abcdefghijklmnopqrstuvwx"

func slowText(id ID) string {
	var b strings.Builder
	for bit := 0; bit < 80; bit += 5 {
		v := 0
		for i := bit; i < bit+5; i++ {
			v = v<<1 | int(id[i/8]>>(7-i%8)&1)
		}
		b.WriteByte(alphabet[v])
	}
	return b.String()
}

func TestText(t *testing.T) {
	ids := someIDs()
	for bit := range 80 {
		var id ID
		id[bit/8] = 1 << (bit % 8)
		ids = append(ids, id)
	}
	for _, id := range ids {
		want := slowText(id)
		if got := id.String(); got != want {
			t.Fatalf("%x: %q, want %q", id[:], got, want)
		}
		if got, _ := id.AppendText([]byte("x")); string(got) != "x"+want {
			t.Fatalf("%x appended: %q", id[:], got)
		}
		if got, err := Parse(want); got != id || err != nil {
			t.Fatalf("%q: %x, %v", want, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for at := range SizeEncoded {
		for c := range 256 {
			text := []byte("9a5ve82329xxxxxx")
			text[at] = byte(c)
			id, err := Parse(string(text))
			if strings.IndexByte(alphabet, byte(c)) >= 0 {
				if err != nil || id.String() != string(text) {
					t.Fatalf("%q: %v, %v", text, id, err)
				}
				continue
			}
			var parse *flake.ParseError
			if !errors.As(err, &parse) || parse.At != at || parse.Text != string(text) || id != (ID{}) {
				t.Fatalf("%q: %v, %v", text, id, err)
			}
		}
	}
	for _, text := range []string{"", "2", "9d5ve82329xxxxx", "9d5ve82329xxxxxxx", strings.Repeat("2", 1000)} {
		if id, err := Parse(text); !errors.As(err, new(*flake.ParseError)) {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
}

func TestValueIsTheBytes(t *testing.T) {
	for _, id := range someIDs() {
		if v, err := id.Value(); err != nil || !bytes.Equal(v.([]byte), id[:]) {
			t.Errorf("%v, %v", v, err)
		}
	}
}

// Text writes the 10 bytes as one number.
func TestBases(t *testing.T) {
	for _, id := range someIDs() {
		number := new(big.Int).SetBytes(id[:])
		for base := flake.MinBase; base <= 36; base++ {
			text, err1 := id.Text(base)
			back, err2 := ParseBase(text, base)
			if err := errors.Join(err1, err2); err != nil || strings.ToLower(text) != number.Text(base) || back != id {
				t.Fatalf("%v in base %d: %q, and back %v, %v", id, base, text, back, err)
			}
		}
	}
	for _, text := range []string{"", "-", "zzzzzzzzzzzzzz"} {
		if id, err := ParseBase(text, 62); !errors.As(err, new(*flake.ParseError)) {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Text)
	}
	f.Add("9d5ve82329xxxxxz")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			if !errors.As(err, new(*flake.ParseError)) || id != (ID{}) {
				t.Fatalf("%q: %v, %v", text, id, err)
			}
			return
		}
		if id.String() != text || slowText(id) != text {
			t.Errorf("%q: %q", text, id)
		}
	})
}

func FuzzID(f *testing.F) {
	for _, v := range vectors(f) {
		id, _ := Make(v.Parts)
		f.Add(id[:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var id, text, parts, jsoned, scanned ID
		if err := id.UnmarshalBinary(data); err != nil {
			return
		}
		parts, err1 := Make(id.Decompose())
		err2 := text.UnmarshalText([]byte(id.String()))
		data, _ = json.Marshal(id)
		err3 := json.Unmarshal(data, &jsoned)
		value, _ := id.Value()
		err4 := scanned.Scan(value)
		if err := errors.Join(err1, err2, err3, err4); err != nil || parts != id || text != id || jsoned != id ||
			scanned != id {
			t.Errorf("%x: %x, %x, %x, %x, %v", id, parts, text, jsoned, scanned, err)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	text := "9d5ve82329xxxxxx"
	buf := []byte(text)
	for name, f := range map[string]func(){
		"Parse":         func() { sinkID, _ = Parse(text) },
		"UnmarshalText": func() { sinkID.UnmarshalText(buf) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// Ids round-trip through bytes and text; bytes or text of any other length is an error.
func TestBytes(t *testing.T) {
	id := MustParse("brpk4q72xwf2m63l")
	text := []byte(id.String())
	var binary, scanned, none ID
	if err := errors.Join(binary.UnmarshalBinary(id[:]), scanned.Scan(text)); err != nil || binary != id || scanned != id {
		t.Errorf("%v, %v, %v", binary, scanned, err)
	}
	if id.IsZero() || !none.IsZero() {
		t.Error("IsZero is true for an id, or false for the zero value")
	}
	for _, err := range []error{
		none.UnmarshalBinary(id[:9]), none.UnmarshalText(append(text, 'a')), none.UnmarshalText(text[:15]),
	} {
		if err == nil || none != (ID{}) {
			t.Errorf("%v, %v", none, err)
		}
	}
}
