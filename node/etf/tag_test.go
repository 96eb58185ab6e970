package etf

import (
	"fmt"
	"os"
	"testing"
)

// testdata/tags.tsv lists the names and numbers of the documentation.
func TestTagNames(t *testing.T) {
	want, err := os.ReadFile("testdata/tags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for n, name := range tagNames {
		if name != "" {
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
