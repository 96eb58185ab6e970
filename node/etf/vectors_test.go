package etf

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// vector is a term as Erlang prints it and encodes it.
type vector struct {
	text string
	src  []byte
}

func vectors(t testing.TB, file string) []vector {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, digits, _ := strings.Cut(lines.Text(), "\t")
		src, err := hex.DecodeString(digits)
		if err != nil || len(src) == 0 {
			t.Fatalf("%s: %q: %v", file, lines.Text(), err)
		}
		all = append(all, vector{text, src})
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%s: %d vectors, %v", file, len(all), lines.Err())
	}
	return all
}

// All vectors are decoded and printed. Those of vectors.tsv, which current releases send, are encoded to the same
// bytes.
func TestVectors(t *testing.T) {
	for _, file := range []string{"vectors.tsv", "old-tags.tsv"} {
		for _, v := range vectors(t, file) {
			term, err := Decode(v.src)
			if err != nil {
				t.Errorf("%.60s: %v", v.text, err)
				continue
			}
			if got := string(FormatRaw(nil, v.src, 1<<20)); strings.HasSuffix(got, "...") {
				t.Errorf("%.60s: FormatRaw: %.80s", v.text, got)
			}
			got, err := Append(nil, term, AllCaps)
			if err != nil || file == "vectors.tsv" && string(got) != string(v.src) {
				t.Errorf("%.60s: Append: %x, %v, want %x", v.text, got, err, v.src)
			}
		}
	}
}

func TestTagKinds(t *testing.T) {
	for n := range 256 {
		tag := Tag(n)
		name := tag.String()
		got := [...]bool{tag.IsAtom(), tag.IsPid(), tag.IsRef(), tag.IsInteger()}
		want := [...]bool{
			strings.Contains(name, "ATOM_") && strings.HasSuffix(name, "_EXT"),
			strings.HasSuffix(name, "PID_EXT"),
			strings.HasSuffix(name, "REFERENCE_EXT"),
			strings.HasSuffix(name, "INTEGER_EXT") || strings.HasSuffix(name, "_BIG_EXT"),
		}
		if got != want {
			t.Errorf("%s: an atom, pid, reference, integer: %t, want %t", tag, got, want)
		}
	}
}

// testdata/tags.tsv lists the names and numbers of the documentation.
func TestTagNames(t *testing.T) {
	want, err := os.ReadFile("testdata/tags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for n, tag := range forms {
		if tag.name != "" {
			got = fmt.Appendf(got, "%s\t%d\n", Tag(n), n)
		}
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Tag(1).String(); got != "tag 1" {
		t.Errorf("Tag(1): %q", got)
	}
}
