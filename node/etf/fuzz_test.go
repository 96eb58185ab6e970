package etf

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// seed adds the vectors, the ill-formed terms and recorded messages.
func seed(f *testing.F) {
	for _, file := range []string{"vectors.tsv", "old-tags.tsv"} {
		for _, v := range vectors(f, file) {
			f.Add(v.src)
		}
	}
	for _, src := range ill {
		f.Add([]byte(src))
	}
	frames, err := os.ReadFile("testdata/frames.txt")
	if err != nil || len(frames) == 0 {
		f.Fatalf("frames.txt: %d bytes, %v", len(frames), err)
	}
	for _, line := range strings.Fields(string(frames)) {
		frame, err := hex.DecodeString(line)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
}

// Raw and Decode accept the same bytes, except for the limits of Decode.
func FuzzRaw(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		r := NewReader(src)
		raw := r.Raw()
		if err := r.Err(); err != nil {
			if raw != nil || len(r.Rest()) != 0 {
				t.Fatalf("Raw returned %x after the error %v", raw, err)
			}
			if _, err := Decode(src); err == nil {
				t.Fatalf("Decode accepts %x", src)
			}
			return
		}
		if !bytes.Equal(append(bytes.Clone(raw), r.Rest()...), src) {
			t.Fatalf("Raw and Rest returned %x and %x for %x", raw, r.Rest(), src)
		}
		if _, err := Decode(raw); err != nil && !limited(err) {
			t.Fatalf("Decode: %v", err)
		}
	})
}

func limited(err error) bool {
	reason := err.(*syntaxError).reason
	return strings.Contains(reason, "more than") || strings.Contains(reason, "deeper than")
}

// A decoded term encodes to bytes that decode to the same term, which encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		term, err := Decode(src)
		if err != nil {
			return
		}
		external, err := Append(nil, term, AllCaps)
		if err != nil {
			t.Fatalf("Append: %v", err)
		}
		again, err := Decode(external)
		if err != nil || !reflect.DeepEqual(again, term) {
			t.Fatalf("%s is decoded again as %s, %v", Format(nil, term), Format(nil, again), err)
		}
		if twice, err := Append(nil, again, AllCaps); err != nil || !bytes.Equal(twice, external) {
			t.Fatalf("%x is encoded again as %x, %v", external, twice, err)
		}
		if old, err := Append(nil, term, Caps{MapTag: true, BitBinaries: true, ExportPtrTag: true}); err == nil &&
			wellFormed(old) != nil {
			t.Fatalf("the form for old peers is malformed: %x: %v", old, wellFormed(old))
		}
	})
}

// FormatRaw keeps to its limit, and prints the bytes of a term as Format prints the decoded term.
func FuzzFormatRaw(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, limit := range []int{0, 2, 10, 1000} {
			text := FormatRaw(nil, src, limit)
			if len(text) > limit || !utf8.Valid(text) {
				t.Fatalf("limit %d: %q", limit, text)
			}
		}
		term, err := Decode(src)
		if err != nil {
			return
		}
		external, err := Append(nil, term, AllCaps)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(external, src) {
			return // another form, whose text may differ
		}
		if a, b := FormatRaw(nil, src, 1<<20), Format(nil, term); len(a) < 1<<20 && !bytes.Equal(a, b) {
			t.Fatalf("FormatRaw prints %s, Format %s", a, b)
		}
	})
}
