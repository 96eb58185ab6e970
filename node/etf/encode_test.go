package etf

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

// For a peer without a capability, Append uses the old form or fails.
func TestAppendForOldPeers(t *testing.T) {
	small := Caps{SmallAtomTags: true}
	v4 := "x" + node + "\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x07"
	for _, test := range []struct {
		name string
		term Term
		caps Caps
		want string // "" means an error
	}{
		{"atom", Atom("ok"), Caps{}, "d\x00\x02ok"},
		{"atom", Atom("ok"), small, "s\x02ok"},
		{"atom", Atom("ok"), AllCaps, "w\x02ok"},
		{"atom in Latin-1", Atom("é"), small, "s\x01\xe9"},
		{"atom in Latin-1", Atom("é"), AllCaps, "w\x02é"},
		{"atom in Latin-1", Atom("ÿ"), small, "s\x01\xff"},
		{"atom beyond Latin-1", Atom("Ā"), small, ""},
		{"atom beyond Latin-1", Atom("€"), small, ""},
		{"atom of 255", Atom(strings.Repeat("é", 255)), small, "s\xff" + strings.Repeat("\xe9", 255)},
		{"atom of 255", Atom(strings.Repeat("é", 255)), AllCaps, "v\x01\xfe" + strings.Repeat("é", 255)},
		{"pid", NewPid("a@b", 1, 2, 0x01020304), small, "gs\x03a@b\x00\x00\x00\x01\x00\x00\x00\x02\x04"},
		{"pid", NewPid("a@b", 1, 2, 3), Caps{BigCreation: true},
			"Xd\x00\x03a@b\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"},
		{"pid", NewPid("a@b", 1, 2, 3), Caps{UTF8Atoms: true}, "g" + node + "\x00\x00\x00\x01\x00\x00\x00\x02\x03"},
		{"pid of an old peer", Pid("gd\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x02\x03"), AllCaps,
			"gd\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x02\x03"},
		{"reference", NewRef("a@b", 0x0102, 7, 8), small, "r\x00\x02s\x03a@b\x02\x00\x00\x00\x07\x00\x00\x00\x08"},
		{"reference", NewRef("a@b", 0x0102, 7), Caps{BigCreation: true, SmallAtomTags: true},
			"Z\x00\x01s\x03a@b\x00\x00\x01\x02\x00\x00\x00\x07"},
		{"oldest reference", Ref("e" + node + "\x00\x00\x00\x07\x01"), small, "es\x03a@b\x00\x00\x00\x07\x01"},
		{"port", Port(v4), AllCaps, v4},
		{"port", Port(v4), Caps{BigCreation: true, UTF8Atoms: true}, "Y" + node + "\x00\x00\x00\x05\x00\x00\x00\x07"},
		{"port", Port(v4), small, "fs\x03a@b\x00\x00\x00\x05\x07"},
		{"port", Port(v4), Caps{V4NC: true, SmallAtomTags: true}, "fs\x03a@b\x00\x00\x00\x05\x07"},
		{"port", Port(v4), Caps{V4NC: true, BigCreation: true, SmallAtomTags: true},
			"xs\x03a@b\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x07"},
		{"port of the highest number", Port("x" + node + "\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x07"), small,
			"fs\x03a@b\xff\xff\xff\xff\x07"},
		{"port of a number too high", Port("x" + node + "\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x07"), small, ""},
		{"big.Int that is small", big.NewInt(-1), Caps{}, "b\xff\xff\xff\xff"},
		{"float", 1.5, Caps{}, "c1.50000000000000000000e+00\x00\x00\x00\x00\x00"},
		{"float", 1.5, Caps{NewFloats: true}, "F\x3f\xf8\x00\x00\x00\x00\x00\x00"},
		{"map", Map{}, Caps{}, ""},
		{"map", Map{}, Caps{MapTag: true}, "t\x00\x00\x00\x00"},
		{"bit string", Bitstring{[]byte{0x80}, 1}, Caps{}, ""},
		{"bit string", Bitstring{[]byte{0x80}, 1}, Caps{BitBinaries: true}, "M\x00\x00\x00\x01\x01\x80"},
		{"export", Export("qw\x01mw\x01fa\x02"), Caps{}, ""},
		{"export", Export("qw\x01mw\x01fa\x02"), Caps{ExportPtrTag: true}, "qd\x00\x01md\x00\x01fa\x02"},
		{"export", Export("qw\x01mw\x01fa\x02"), AllCaps, "qw\x01mw\x01fa\x02"},
		{"encoded", Encoded("a\x05"), Caps{}, "a\x05"},
		{"inside", List{Tuple{Atom("€")}}, small, ""},
	} {
		got, err := Append([]byte("dst"), test.term, test.caps)
		if test.want == "" {
			if err == nil || string(got) != "dst" {
				t.Errorf("%s: %q, %v, want an error", test.name, got, err)
			}
			continue
		}
		if err != nil || string(got) != "dst"+test.want {
			t.Errorf("%s: %q, %v, want %q", test.name, got, err, test.want)
		}
		if err := wellFormed(got[3:]); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	endless := Tuple{nil}
	endless[0] = endless
	for _, term := range []Term{
		nil, 5, "text", true, Tuple{nil}, struct{}{}, endless,
		Atom("\xff"), Atom(strings.Repeat("a", 256)), math.NaN(), math.Inf(-1),
		ImproperList{nil, Atom("a")}, Bitstring{nil, 1}, Bitstring{[]byte{1}, 0}, Bitstring{[]byte{1}, 8},
		Pid(""), Pid("junk"), Pid("j"), Ref(NewPid("a@b", 1, 2, 3)), Port("j"), Pid(NewPid("a@b", 1, 2, 3) + "j"),
		NewRef("a@b", 1), NewRef("a@b", 1, 1, 2, 3, 4, 5, 6), NewPid("\xff", 1, 2, 3),
		Fun(""), Fun("j"), Fun("p"), Export(""), Export("j"), Export("qw\x01mw\x01fw\x01a"),
	} {
		got, err := Append([]byte("dst"), term, AllCaps)
		if err == nil || string(got) != "dst" {
			t.Errorf("%#v: Append returned %q, %v", term, got, err)
		}
		if text := string(Format(nil, term)); !strings.HasPrefix(text, "#Error<etf: ") {
			t.Errorf("%#v: Format returned %s", term, text)
		}
	}
}

func TestMustAppendAtom(t *testing.T) {
	if got := MustAppendAtom([]byte("dst"), "ok", AllCaps); string(got) != "dstw\x02ok" {
		t.Errorf("%q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for an atom that is not UTF-8")
		}
	}()
	MustAppendAtom(nil, "\xff", AllCaps)
}

func TestAppendString(t *testing.T) {
	for n, want := range map[int]Tag{0: NilExt, 1: StringExt, 65535: StringExt, 65536: ListExt} {
		got := appendString(nil, String(strings.Repeat("x", n)))
		if Tag(got[0]) != want || wellFormed(got) != nil {
			t.Errorf("%d bytes: %s, %v", n, Tag(got[0]), wellFormed(got))
		}
		term, err := Decode(got)
		if elements, ok := Elements(term); err != nil || !ok || len(elements) != n || n > 0 && elements[n-1] != int64('x') {
			t.Errorf("%d bytes: %d elements, %v", n, len(elements), err)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	ref := NewRef("c27@127.0.0.1", 1, 1, 2, 3)
	call, err := Append(nil, Tuple{
		Atom("$gen_call"), Tuple{NewPid("c27@127.0.0.1", 1, 2, 3), ImproperList{[]Term{Atom("alias")}, ref}},
		Tuple{Atom("get"), int64(62), 1.5, []byte("b"), String("s"), Map{{Atom("k"), List{Fun(funs(t)[0])}}}},
	}, AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	var bad error
	dst, old := make([]byte, 0, 1024), []byte("d\x00\x09$gen_call")
	for name, f := range map[string]func(){
		"Raw": func() {
			r := NewReader(call)
			r.Raw()
			bad = r.Finish()
		},
		"Reader": func() {
			r := NewReader(call)
			r.Tuple()
			r.Atom()
			r.Tuple()
			r.Pid()
			r.ListHeader()
			r.Atom()
			r.Ref()
			r.Tuple()
			r.Atom()
			r.Int()
			r.Raw()
			r.Binary()
			r.StringExt()
			r.Map()
			r.Atom()
			r.Raw()
			bad = r.Finish()
		},
		"old atom": func() {
			r := NewReader(old)
			r.Atom()
			bad = r.Finish()
		},
		"Append": func() {
			b := AppendTupleHeader(dst, 2)
			b, bad = appendAtom(b, "ok", AllCaps)
			b, _ = appendAtom(b, "é", Caps{})
			b = AppendInt(b, 1<<40)
			b = AppendUint64(b, 1<<63)
			b = AppendBinary(b, call)
			b = appendString(b, "text")
			b = AppendNil(AppendListHeader(b, 1))
			_ = b
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 || bad != nil {
			t.Errorf("%s: %v allocations, %v", name, n, bad)
		}
	}
}

// funs returns the funs among the vectors.
func funs(t *testing.T) (all []string) {
	for _, v := range vectors(t, "vectors.tsv") {
		if Tag(v.src[0]) == NewFunExt {
			all = append(all, string(v.src))
		}
	}
	if len(all) == 0 {
		t.Fatal("no vector is a fun")
	}
	return all
}
