package etf

import (
	"bufio"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// A vector is a term as real Erlang prints it and as it encodes it.
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

// All forms are decoded and printed; those that Erlang sends today, vectors.tsv, are encoded to the same bytes.
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
