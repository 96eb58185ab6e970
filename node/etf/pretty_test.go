package etf

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Terms are printed as the Erlang shell does, byte for byte.
func TestPretty(t *testing.T) {
	file, err := os.ReadFile("testdata/pretty.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(file)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var column, width, depth int
		if _, err := fmt.Sscan(fields[0], &column, &width, &depth); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		exprs, _, err := Parse(fields[1]+".", false)
		if err != nil {
			t.Errorf("%s: %v", fields[1], err)
			continue
		}
		want := strings.Join(fields[2:], "\n")
		got := string(Pretty(nil, exprs[0].(*Literal).Term, column, width, depth))
		if got != want {
			t.Errorf("%s\n%s\ngot:\n%s\nwant:\n%s", fields[0], fields[1], got, want)
		}
		n++
	}
	if n == 0 {
		t.Error("no terms in pretty.tsv")
	}
}
