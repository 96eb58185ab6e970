package sno

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
)

// The text as it is defined: the bits in fives, from the most significant on.
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
	for at := range encodedLen {
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

func TestJSON(t *testing.T) {
	type pair struct {
		A ID
		B ID `json:",omitzero"`
		C map[ID]int
	}
	id, _ := Parse("9d5ve82329xxxxxx")
	for want, v := range map[string]pair{
		`{"A":"9d5ve82329xxxxxx","C":{"9d5ve82329xxxxxx":1}}`: {A: id, C: map[ID]int{id: 1}},
		`{"A":"2222222222222222","C":null}`:                   {},
	} {
		data, err := json.Marshal(v)
		if string(data) != want || err != nil {
			t.Errorf("%s, %v, want %s", data, err, want)
		}
		back := pair{A: maxID}
		if err := json.Unmarshal(data, &back); err != nil || back.A != v.A || back.C[id] != v.C[id] {
			t.Errorf("%s: %+v, %v", data, back, err)
		}
	}
	for _, bad := range []string{`"9d5ve82329xxxxxz"`, `"9d5ve82329xxxxx"`, `"9d5ve82329xxxxxxx"`, `12`, `""`, `123456789012345678`, `{}`} {
		got := id
		if err := json.Unmarshal([]byte(bad), &got); err == nil || got != id {
			t.Errorf("%s: %v, %v", bad, got, err)
		}
	}
}

func TestBinary(t *testing.T) {
	id, _ := Parse("9d5ve82329xxxxxx")
	data, err := id.MarshalBinary()
	if !bytes.Equal(data, id[:]) || err != nil {
		t.Errorf("%x, %v", data, err)
	}
	var back ID
	if err := back.UnmarshalBinary(data); back != id || err != nil {
		t.Errorf("%x, %v", back, err)
	}
	if err := back.UnmarshalBinary(data[1:]); !errors.As(err, new(*flake.ParseError)) || back != id {
		t.Errorf("%x, %v", back, err)
	}
}

func TestSQL(t *testing.T) {
	id, _ := Parse("9d5ve82329xxxxxx")
	for _, id := range []ID{id, {}} {
		if v, err := id.Value(); err != nil || !bytes.Equal(v.([]byte), id[:]) {
			t.Errorf("%v, %v", v, err)
		}
	}
	for _, c := range []struct {
		src  any
		want ID
		ok   bool
	}{
		{id[:], id, true}, {id.String(), id, true}, {[]byte(id.String()), id, true},
		{nil, maxID, false}, {"", maxID, false}, {[]byte{}, maxID, false},
		{"9d5ve82329", maxID, false}, {id[:9], maxID, false}, {"9d5ve82329xxxxxz", maxID, false}, {42, maxID, false},
	} {
		got := maxID
		if err := got.Scan(c.src); got != c.want || (err == nil) != c.ok {
			t.Errorf("%v: %v, %v", c.src, got, err)
		}
	}
	var null sql.Null[ID]
	if err := null.Scan(nil); err != nil || null.Valid {
		t.Errorf("NULL: %+v, %v", null, err)
	}
}

// A text in a base is that of the number that the 10 bytes are.
func TestBases(t *testing.T) {
	for _, id := range someIDs() {
		number := new(big.Int).SetBytes(id[:])
		for base := flake.MinBase; base <= 36; base++ {
			text, err1 := id.Text(base)
			padded, err2 := id.Padded(base)
			appended, err3 := id.AppendBase([]byte("x"), base)
			if err := errors.Join(err1, err2, err3); err != nil || strings.ToLower(text) != number.Text(base) || string(appended) != "x"+text ||
				len(padded) != Width(base) || padded != strings.Repeat("0", len(padded)-len(text))+text {
				t.Fatalf("%v in base %d: %q, %q, %q, %v", id, base, text, padded, appended, err)
			}
			if back, err := ParseBase(padded, base); back != id || err != nil {
				t.Fatalf("%q of base %d: %v, %v", padded, base, back, err)
			}
		}
	}
	for _, text := range []string{"", "-", "zzzzzzzzzzzzzz"} {
		if id, err := ParseBase(text, 62); !errors.As(err, new(*flake.ParseError)) {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	if _, err := maxID.Text(63); !errors.Is(err, flake.ErrBase) {
		t.Error(err)
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
		if err := errors.Join(err1, err2, err3, err4); err != nil || parts != id || text != id || jsoned != id || scanned != id {
			t.Errorf("%x: %x, %x, %x, %x, %v", id, parts, text, jsoned, scanned, err)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	g := newGenerator(t, nil, nil)
	text := "9d5ve82329xxxxxx"
	buf := []byte(text)
	for name, f := range map[string]func(){
		"Next":          func() { sinkID, _ = g.Next(t.Context()) },
		"AppendText":    func() { sinkText, _ = sinkID.AppendText(buf[:0]) },
		"Parse":         func() { sinkID, _ = Parse(text) },
		"UnmarshalText": func() { sinkID.UnmarshalText(buf) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestMustParse(t *testing.T) {
	const text = "9d5ve82329xxxxxx"
	if id := MustParse(text); id.String() != text {
		t.Error(id)
	}
	for _, text := range []string{"", text[1:], "0" + text[1:]} {
		func() {
			defer func() {
				if _, ok := recover().(*flake.ParseError); !ok {
					t.Errorf("%q is taken", text)
				}
			}()
			MustParse(text)
		}()
	}
}
