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

// Terms of all kinds can be printed, however little room there is.
func FuzzPretty(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		term, err := Decode(src)
		if err != nil {
			return
		}
		for _, n := range []int{0, 1, 2, 30, 100} {
			Pretty(nil, term, 1+n, 80, n)
			Pretty(nil, term, 1, n, 30)
		}
		flat := string(Pretty(nil, term, 1, 1<<30, -1))
		if again := string(Pretty([]byte("x"), term, 1, 1<<30, -1)); again != "x"+flat {
			t.Fatalf("%s became %s", flat, again)
		}
	})
}

func TestPrettyEdges(t *testing.T) {
	for _, test := range []struct {
		term                 Term
		column, width, depth int
		want                 string
	}{
		{nil, 1, 80, 30, "#Error<etf: a <nil> is not a term>"},
		{ImproperList{nil, Atom("a")}, 1, 80, 30, "[a]"},
		{Tuple{Atom("a"), Atom("b")}, 1, 80, 0, "..."},
		{Tuple{Atom("a"), List{String("b"), List{}, int64(1)}}, 1, 80, -1, `{a,["b",[],1]}`},
		{List{int64(1), int64(2)}, 1000, 0, 30, "[1,\n" + strings.Repeat(" ", 1000) + "2]"},
		{[]byte("abc\x00"), 1, 80, -1, "<<97,98,99,0>>"},
		{NewPid("a@b", 1, 2, 3), 1, 80, 30, "<0.1.2>"},
	} {
		if got := string(Pretty(nil, test.term, test.column, test.width, test.depth)); got != test.want {
			t.Errorf("%v: %q, want %q", test.term, got, test.want)
		}
	}
}
