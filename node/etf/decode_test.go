package etf

import (
	"bytes"
	"math/big"
	"reflect"
	"strings"
	"testing"
)

func TestDecodeLimits(t *testing.T) {
	elements := func(n int) []byte {
		return append(AppendTupleHeader(nil, n), bytes.Repeat([]byte("j"), n)...)
	}
	integer := func(n int) []byte {
		return append([]byte{byte(LargeBigExt), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 0},
			bytes.Repeat([]byte{1}, n)...)
	}
	for _, test := range []struct {
		name string
		src  []byte
		want string // "" means no error
	}{
		{"elements", elements(MaxElements), ""},
		{"elements", elements(MaxElements + 1), "etf: byte 0: LARGE_TUPLE_EXT: more than 131072 elements"},
		{"elements of several", append([]byte("h\x02"), append(elements(MaxElements/2), elements(MaxElements/2)...)...),
			"etf: byte 65543: LARGE_TUPLE_EXT: more than 131072 elements"},
		{"elements of tails", []byte("h\x02" + strings.Repeat("l\x00\x00\x00\x01jk\xff\xff"+strings.Repeat("a", 65535), 2)),
			"etf: byte 65552: STRING_EXT: more than 131072 elements"},
		{"integer", integer(MaxIntegerBytes), ""},
		{"integer", integer(MaxIntegerBytes + 1), "etf: byte 0: LARGE_BIG_EXT: integer of more than 8192 bytes"},
	} {
		if err := wellFormed(test.src); err != nil {
			t.Errorf("%s: Raw: %v", test.name, err)
		}
		got, err := Decode(test.src)
		switch {
		case test.want == "" && err != nil, test.want != "" && (err == nil || err.Error() != test.want):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		case err == nil:
			again, err := Append(nil, got, AllCaps)
			if err != nil || !bytes.Equal(again, test.src) {
				t.Errorf("%s: Append: %.40x, %v", test.name, again, err)
			}
		}
	}
}

func TestMaxDepth(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string // the bytes around the inner term
		around        func(Term) Term
		levels        int
	}{
		"tuple": {"h\x01", "", func(t Term) Term { return Tuple{t} }, 1},
		"list":  {"l\x00\x00\x00\x01", "j", func(t Term) Term { return List{t} }, 1},
		"tail":  {"l\x00\x00\x00\x01jh\x01", "", func(t Term) Term { return ImproperList{List{List(nil)}, Tuple{t}} }, 2},
		"key":   {"t\x00\x00\x00\x01", "j", func(t Term) Term { return Map{{t, List(nil)}} }, 1},
		"value": {"t\x00\x00\x00\x01j", "", func(t Term) Term { return Map{{List(nil), t}} }, 1},
	} {
		nested := func(src string, term Term, n int) (string, Term) {
			for range n {
				src, term = test.before+src+test.after, test.around(term)
			}
			return src, term
		}
		n := (MaxDepth - 1) / test.levels
		src, term := nested("h\x00", Tuple{}, n)
		got, err := Append(nil, term, AllCaps)
		if err != nil || string(got) != src {
			t.Errorf("%s: Append: %.40q, %v", name, got, err)
		}
		if _, err := Decode([]byte(src)); err != nil {
			t.Errorf("%s: Decode: %v", name, err)
		}
		if text := FormatRaw(nil, []byte(src), 1<<20); bytes.HasSuffix(text, []byte("...")) {
			t.Errorf("%s: FormatRaw: %s", name, text)
		}

		src, term = nested("j", List(nil), n+1)
		if err := wellFormed([]byte(src)); err != nil {
			t.Errorf("%s: Raw: %v", name, err)
		}
		if _, err := Append(nil, term, AllCaps); err == nil {
			t.Errorf("%s: Append accepts a term deeper than MaxDepth", name)
		}
		if _, err := Decode([]byte(src)); err == nil {
			t.Errorf("%s: Decode accepts a term deeper than MaxDepth", name)
		}
		if text := FormatRaw(nil, []byte(src), 1<<20); !bytes.HasSuffix(text, []byte("...")) {
			t.Errorf("%s: FormatRaw prints a term deeper than MaxDepth: %s", name, text)
		}
	}
}

func TestDecodedTypes(t *testing.T) {
	for _, test := range []struct {
		src  string
		want Term
	}{
		{"a\x05", int64(5)},
		{"n\x08\x01\x00\x00\x00\x00\x00\x00\x00\x80", int64(-1 << 63)},
		{"n\x08\x00\x00\x00\x00\x00\x00\x00\x00\x80", new(big.Int).Lsh(big.NewInt(1), 63)},
		{"n\x01\x02\x05", int64(-5)},
		{"j", List(nil)},
		{"k\x00\x00", List(nil)},
		{"l\x00\x00\x00\x00j", List(nil)},
		{"k\x00\x02ab", String("ab")},
		{"l\x00\x00\x00\x00k\x00\x02ab", String("ab")},
		{"l\x00\x00\x00\x01jk\x00\x01a", List{List(nil), int64('a')}},
		{"l\x00\x00\x00\x01jl\x00\x00\x00\x01jj", List{List(nil), List(nil)}},
		{"l\x00\x00\x00\x01ja\x01", ImproperList{[]Term{List(nil)}, int64(1)}},
		{"m\x00\x00\x00\x00", []byte{}},
		{"M\x00\x00\x00\x01\x08a", []byte("a")},
		{"M\x00\x00\x00\x02\x03a\xff", Bitstring{[]byte("a\xe0"), 3}},
		{"h\x00", Tuple{}},
		{"t\x00\x00\x00\x00", Map{}},
		{"t\x00\x00\x00\x01jw\x02ok", Map{{List(nil), Atom("ok")}}},
		{"s\x01\xe9", Atom("é")},
		{"s\x01\x80", Atom("\u0080")},
		{"s\x09aaaaaaa\xe9a", Atom("aaaaaaaéa")},
		{"c1.5" + strings.Repeat("\x00", 28), 1.5},
	} {
		got, err := Decode([]byte(test.src))
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: %#v, %v, want %#v", test.src, got, err, test.want)
		}
	}
}

// A term does not refer to its source.
func TestDecodeCopies(t *testing.T) {
	for _, v := range vectors(t, "vectors.tsv") {
		src := bytes.Clone(v.src)
		term, err := Decode(src)
		clear(src)
		if again, _ := Append(nil, term, AllCaps); err != nil || !bytes.Equal(again, v.src) {
			t.Errorf("%.60s: %x, %v", v.text, again, err)
		}
	}
}

func TestIdentifiers(t *testing.T) {
	for _, node := range []Atom{"a@b", Atom(strings.Repeat("€", 255))} {
		p := NewPid(node, 1, 2, 0xfedcba98)
		name, n, creation := PidParts([]byte(p))
		if p.Node() != node || Atom(name) != node || n != 2<<32+1 || p.Creation() != creation || creation != 0xfedcba98 {
			t.Errorf("%s: %s %s %#x %d %d", p, p.Node(), name, n, p.Creation(), creation)
		}
		r := NewRef(node, 0xfedcba98, 3, 4, 5)
		id := parseIdentifier([]byte(r))
		if Atom(id.node) != node || id.creation != 0xfedcba98 || !reflect.DeepEqual(r.Words(), []uint32{3, 4, 5}) {
			t.Errorf("%s: %+v %v", r, id, r.Words())
		}
	}
	port := Port("x" + node + "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03")
	if id := parseIdentifier([]byte(port)); string(id.node) != "a@b" || id.number() != 1<<32+2 || id.creation != 3 {
		t.Errorf("%s: %+v", port, id)
	}
	old := Pid("gd\x00\x03\xe9@b\x00\x00\x00\x01\x00\x00\x00\x02\x03")
	name, n, creation := PidParts([]byte(old))
	if old.Node() != "é@b" || string(name) != "é@b" || n != 2<<32+1 || old.Creation() != 3 || creation != 3 {
		t.Errorf("%s: %s %s %#x %d %d", old, old.Node(), name, n, old.Creation(), creation)
	}
	if old.String() != "<0.1.2>" {
		t.Errorf("an old pid prints as %s", old)
	}
	for _, bad := range []string{"", "X", "Xjunk", "a\x01", string(old) + "x", "j" + string(NewRef("a@b", 1, 2)[1:])} {
		if _, n, _ := PidParts([]byte(bad)); Pid(bad).Node() != "" || n != 0 || len(Ref(bad).Words()) != 0 {
			t.Errorf("%q is accepted as an identifier", bad)
		}
		for _, s := range []string{Pid(bad).String(), Ref(bad).String()} {
			if !strings.HasPrefix(s, "#Error<") {
				t.Errorf("%q prints as %s", bad, s)
			}
		}
	}
}

func TestExport(t *testing.T) {
	if m, f, arity := Export("qw\x01mw\x01fa\x02").Parts(); m != "m" || f != "f" || arity != 2 {
		t.Errorf("%s:%s/%d", m, f, arity)
	}
	if m, f, arity := Export("qw\x01mw\x01f").Parts(); m != "" || f != "" || arity != 0 {
		t.Errorf("without an arity: %s:%s/%d", m, f, arity)
	}
}

// The elements of a String are its bytes, not its characters, even if it is UTF-8 text.
func TestElements(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, text := range []String{"", "text", "\x00\x1b\x21\xc3\xa9\x01", String(every), "é€\U0001F600"} {
		elements, ok := Elements(text)
		if !ok || len(elements) != len(text) {
			t.Errorf("%q: %v, %t", text, elements, ok)
			continue
		}
		for i, e := range elements {
			if e != int64(text[i]) {
				t.Errorf("%q: element %d is %v", text, i, e)
			}
		}
	}
	if _, ok := Elements(ImproperList{List{int64(1)}, int64(2)}); ok {
		t.Error("Elements accepted an improper list")
	}
}
