package erltext

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// Terms are printed as the Erlang shell does, byte for byte.
func TestPretty(t *testing.T) {
	for _, fields := range rows(t, "testdata/pretty.tsv") {
		var column, width, depth int
		if _, err := fmt.Sscan(fields[0], &column, &width, &depth); err != nil {
			t.Fatalf("%q: %v", fields, err)
		}
		want := strings.Join(fields[2:], "\n")
		got := string(Pretty(nil, literal(t, fields[1]), column, width, depth))
		if got != want {
			t.Errorf("%s\n%s\ngot:\n%s\nwant:\n%s", fields[0], fields[1], got, want)
		}
	}
}

// Terms of all kinds can be printed, however little room there is.
func FuzzPretty(f *testing.F) {
	for _, row := range rows(f, vectors) {
		src, err := hex.DecodeString(row[1])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		term, err := etf.Decode(src)
		if err != nil {
			return
		}
		for _, n := range []int{0, 1, 2, 30, 100} {
			Pretty(nil, term, 1+n, 80, n)
			Pretty(nil, term, 1, n, 30)
		}
		wide := string(Pretty(nil, term, 1, 1<<30, -1))
		if again := string(Pretty([]byte("x"), term, 1, 1<<30, -1)); again != "x"+wide {
			t.Fatalf("%s became %s", wide, again)
		}
	})
}

func TestPrettyEdges(t *testing.T) {
	for _, test := range []struct {
		term                 etf.Term
		column, width, depth int
		want                 string
	}{
		{nil, 1, 80, 30, "#Error<etf: a <nil> is not a term>"},
		{etf.ImproperList{Tail: etf.Atom("a")}, 1, 80, 30, "[a]"},
		{etf.Tuple{etf.Atom("a"), etf.Atom("b")}, 1, 80, 0, "..."},
		{etf.Tuple{etf.Atom("a"), etf.List{etf.String("b"), etf.List{}, int64(1)}}, 1, 80, -1, `{a,["b",[],1]}`},
		{etf.List{int64(1), int64(2)}, 1000, 0, 30, "[1,\n" + strings.Repeat(" ", 1000) + "2]"},
		{[]byte("abc\x00"), 1, 80, -1, "<<97,98,99,0>>"},
		{etf.NewPid("a@b", 1, 2, 3), 1, 80, 30, "<0.1.2>"},
	} {
		if got := string(Pretty(nil, test.term, test.column, test.width, test.depth)); got != test.want {
			t.Errorf("%v: %q, want %q", test.term, got, test.want)
		}
	}
}
