package etf

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

func wellFormed(src []byte) error {
	r := NewReader(src)
	r.Raw()
	return r.Finish()
}

func TestRawIsTheTermAlone(t *testing.T) {
	for _, file := range []string{"vectors.tsv", "old-tags.tsv"} {
		for _, v := range vectors(t, file) {
			r := NewReader(append(bytes.Clone(v.src), "rest"...))
			if got := r.Raw(); !bytes.Equal(got, v.src) || string(r.Rest()) != "rest" {
				t.Errorf("%.60s: %x, %v", v.text, got, r.Err())
			}
		}
	}
}

// A term truncated at any offset is an error.
func TestTruncation(t *testing.T) {
	for _, file := range []string{"vectors.tsv", "old-tags.tsv"} {
		for _, v := range vectors(t, file) {
			for n := range v.src {
				cut := v.src[:n:n]
				if wellFormed(cut) == nil {
					t.Errorf("%.60s: %d of %d bytes: Raw accepts it", v.text, n, len(v.src))
				}
				if _, err := Decode(cut); err == nil {
					t.Errorf("%.60s: %d of %d bytes: Decode accepts it", v.text, n, len(v.src))
				}
				if got := FormatRaw(nil, cut, 1<<20); !strings.HasSuffix(string(got), "...") {
					t.Errorf("%.60s: %d of %d bytes: %s", v.text, n, len(v.src), got)
				}
			}
		}
	}
}

const (
	node    = "w\x03a@b"
	pidTerm = "X" + node + "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
	uniq    = "0123456789abcdef"
	huge    = "\xff\xff\xff\xff"
)

// ill holds terms with a wrong length or field, at least one for every tag.
var ill = map[string]string{
	"NEW_FLOAT_EXT of NaN":         "F\x7f\xf8\x00\x00\x00\x00\x00\x00",
	"NEW_FLOAT_EXT infinite":       "F\x7f\xf0\x00\x00\x00\x00\x00\x00",
	"BIT_BINARY_EXT too long":      "M" + huge + "\x01a",
	"BIT_BINARY_EXT of 9 bits":     "M\x00\x00\x00\x01\x09a",
	"BIT_BINARY_EXT of 0 bits":     "M\x00\x00\x00\x01\x00a",
	"BIT_BINARY_EXT without bytes": "M\x00\x00\x00\x00\x01",
	"BIT_BINARY_EXT of nothing":    "M\x00\x00\x00\x00\x00",
	"COMPRESSED":                   "P\x00\x00\x00\x02x\x9cKd\x04\x00\x00\xc4\x00\x63",
	"ATOM_CACHE_REF":               "R\x00",
	"NEW_PID_EXT with a list":      "Xjaaaabbbbcccc",
	"NEW_PORT_EXT with a list":     "Yjaaaabbbb",
	"NEWER_REFERENCE_EXT of 65535": "Z\xff\xff" + node + "aaaabbbb",
	"NEWER_REFERENCE_EXT of 6":     "Z\x00\x06" + node + "aaaabbbbccccddddeeeeffffgggg",
	"NEWER_REFERENCE_EXT of 0":     "Z\x00\x00" + node + "aaaa",
	"SMALL_INTEGER_EXT":            "a",
	"INTEGER_EXT":                  "b\x00\x00\x00",
	"FLOAT_EXT of letters":         "cnan" + strings.Repeat("\x00", 28),
	"FLOAT_EXT infinite":           "c1.0e999" + strings.Repeat("\x00", 24),
	"FLOAT_EXT in base 16":         "c0x1p4" + strings.Repeat("\x00", 26),
	"FLOAT_EXT empty":              "c" + strings.Repeat("\x00", 31),
	"ATOM_EXT too long":            "d\xff\xffa",
	"ATOM_EXT of 256":              "d\x01\x00" + strings.Repeat("a", 256),
	"ATOM_EXT of 256 in UTF-8":     "d\x01\x00" + strings.Repeat("é", 128),
	"REFERENCE_EXT with a number":  "ea\x01aaaab",
	"PORT_EXT with a number":       "fa\x01aaaab",
	"PID_EXT with a number":        "ga\x01aaaabbbbc",
	"SMALL_TUPLE_EXT of 255":       "h\xffj",
	"LARGE_TUPLE_EXT of 2^32":      "i" + huge + "j",
	"NIL_EXT and more":             "jj",
	"STRING_EXT of 65535":          "k\xff\xffa",
	"LIST_EXT of 2^32":             "l" + huge + "j",
	"LIST_EXT without a tail":      "l\x00\x00\x00\x01j",
	"BINARY_EXT of 2^32":           "m" + huge + "a",
	"BINARY_EXT and more":          "m\x00\x02\x00\x00" + strings.Repeat("x", 1<<17) + "j",
	"SMALL_BIG_EXT of 255":         "n\xff\x00a",
	"LARGE_BIG_EXT of 2^32":        "o" + huge + "\x00a",
	"NEW_FUN_EXT of size 2^32": "p" + huge + "\x00" + uniq +
		"\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00" + pidTerm,
	"NEW_FUN_EXT of size 0": "p\x00\x00\x00\x00\x00" + uniq +
		"\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00" + pidTerm,
	"NEW_FUN_EXT one too short": "p\x00\x00\x00\x35\x00" + uniq +
		"\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00" + pidTerm,
	"NEW_FUN_EXT of 2^32 variables": "p\x00\x00\x00\x36\x00" + uniq + "\x00\x00\x00\x00" + huge +
		"w\x01ma\x00a\x00" + pidTerm,
	"NEW_FUN_EXT without a pid":      "p\x00\x00\x00\x25\x00" + uniq + "\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00j",
	"EXPORT_EXT with a big arity":    "qw\x01mw\x01fb\x00\x00\x00\x01",
	"EXPORT_EXT without a function":  "qw\x01mja\x01",
	"NEW_REFERENCE_EXT of 65535":     "r\xff\xff" + node + "abbbb",
	"SMALL_ATOM_EXT of 255":          "s\xffa",
	"MAP_EXT of 2^32":                "t" + huge + "jj",
	"MAP_EXT without a value":        "t\x00\x00\x00\x01j",
	"FUN_EXT of 2^32 variables":      "u" + huge + pidTerm + "w\x01ma\x00a\x00",
	"FUN_EXT without a pid":          "u\x00\x00\x00\x00jw\x01ma\x00a\x00",
	"ATOM_UTF8_EXT of 65535":         "v\xff\xffa",
	"ATOM_UTF8_EXT of 256":           "v\x01\x00" + strings.Repeat("a", 256),
	"SMALL_ATOM_UTF8_EXT of 255":     "w\xffa",
	"SMALL_ATOM_UTF8_EXT not UTF-8":  "w\x01\xe9",
	"SMALL_ATOM_UTF8_EXT ill at 8":   "w\x08aaaaaaa\xe9",
	"SMALL_ATOM_UTF8_EXT surrogate":  "w\x03\xed\xa0\x80",
	"V4_PORT_EXT with a list":        "xjaaaabbbbcccc",
	"LOCAL_EXT":                      "yaaaaaaaaa\x01",
	"tag 0":                          "\x00",
	"tag 255":                        "\xff",
	"nested counts beyond the bytes": strings.Repeat("h\xff", 200) + strings.Repeat("j", 300),
}

func TestIllFormed(t *testing.T) {
	for n, tag := range forms {
		found := tag.name == ""
		for name := range ill {
			found = found || strings.HasPrefix(name, tag.name+" ") || name == tag.name
		}
		if !found {
			t.Errorf("no case for tag %d, %s", n, tag.name)
		}
	}
	for name, text := range ill {
		src := []byte(text)
		if wellFormed(src) == nil {
			t.Errorf("%s: Raw accepts it", name)
		}
		if term, err := Decode(src); err == nil || term != nil {
			t.Errorf("%s: Decode: %v, %v", name, term, err)
		}
		r := NewReader(src)
		if text := r.Atom(); text != nil {
			t.Errorf("%s: Atom: %s", name, text)
		}
		if text := FormatRaw(nil, src, 1000); !bytes.HasSuffix(text, []byte("...")) {
			t.Errorf("%s: FormatRaw: %s", name, text)
		}
	}
}

// These terms resemble ill-formed ones, but are accepted.
func TestWellFormed(t *testing.T) {
	for name, text := range map[string]string{
		"NEW_FUN_EXT": "p\x00\x00\x00\x36\x00" + uniq +
			"\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00" + pidTerm,
		"FUN_EXT":               "u\x00\x00\x00\x01" + pidTerm + "w\x01ma\x01a\x02h\x01j",
		"255 wide characters":   "v\x02\xfd" + strings.Repeat("€", 255),
		"atom of no characters": "w\x00",
		"nested funs": strings.Repeat("u\x00\x00\x00\x01"+pidTerm+"w\x01ma\x01a\x02", 100) +
			"p\x00\x00\x00\x36\x00" + uniq + "\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00" + pidTerm,
		"fun before a tuple": "h\x02p\x00\x00\x00\x36\x00" + uniq +
			"\x00\x00\x00\x00\x00\x00\x00\x00w\x01ma\x00a\x00" + pidTerm + "h\x01j",
		"1 MB binary": "m\x00\x10\x00\x00" + strings.Repeat("x", 1<<20),
	} {
		src := []byte(text)
		if err := wellFormed(src); err != nil {
			t.Errorf("%s: Raw: %v", name, err)
		}
		term, err := Decode(src)
		if err != nil {
			t.Errorf("%s: Decode: %v", name, err)
		}
		if again, err := Append(nil, term, AllCaps); err != nil || string(again) != text {
			t.Errorf("%s: Append: %.40q, %v", name, again, err)
		}
	}
}

func TestCount(t *testing.T) {
	for src, want := range map[string]int{
		"j":                                1,
		"h\x02h\x01ja\x01":                 4,
		"l\x00\x00\x00\x01jj":              3,
		"t\x00\x00\x00\x01jk\x00\x05hello": 3 + 8,
		"h\x03a\x01":                       4,
	} {
		if got := Count([]byte(src)); got != want {
			t.Errorf("%q: %d, want %d", src, got, want)
		}
	}
}

// A length that exceeds the bytes left is refused before memory is allocated for it.
func TestForgedLengthsAllocateNothing(t *testing.T) {
	var before, after runtime.MemStats
	for name, text := range ill {
		src := []byte(text)
		runtime.ReadMemStats(&before)
		Decode(src)
		FormatRaw(nil, src, 200) // the text itself takes memory, up to its limit
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

func TestRawAtAnyDepth(t *testing.T) {
	const depth = 1 << 20
	src := append(bytes.Repeat([]byte("h\x01"), depth), 'j')
	if err := wellFormed(src); err != nil {
		t.Error(err)
	}
	if _, err := Decode(src); err == nil {
		t.Error("Decode accepts a term deeper than MaxDepth")
	}
	if got := FormatRaw(nil, src, 20); string(got) != "{{{{{{{{{{{{{{{{{..." {
		t.Errorf("FormatRaw: %s", got)
	}
	if got := FormatRaw(nil, src, 1<<20); len(got) != MaxDepth+3 {
		t.Errorf("FormatRaw: %d bytes", len(got))
	}
}
