package erltext

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

func TestPretty(t *testing.T) {
	for _, test := range []struct {
		term  etf.Term
		dst   string
		width int
		want  string
	}{
		{etf.List{int64(1), int64(2), int64(3)}, "", 80, "[1,2,3]"},
		{etf.List{int64(1), int64(2), int64(3)}, "", 6, "[1,2,\n 3]"},
		{etf.List{int64(1), int64(2), int64(3)}, "x = ", 10, "x = [1,2,\n     3]"},
		{etf.Tuple{etf.Atom("ok"), etf.List{etf.Atom("abcd"), etf.Atom("efgh")}}, "", 14, "{ok,\n [abcd,efgh]}"},
		{etf.Tuple{etf.Atom("ok"), etf.List{etf.Atom("abcd"), etf.Atom("efgh")}}, "", 10, "{ok,\n [abcd,\n  efgh]}"},
		{etf.Map{{Key: etf.Atom("abcdef"), Value: etf.Tuple{etf.Atom("ghi"), etf.Atom("jkl")}}}, "", 16,
			"#{abcdef =>\n  {ghi,jkl}}"},
		{etf.ImproperList{Elements: []etf.Term{etf.Atom("a")}, Tail: etf.Atom("b")}, "", 3, "[a|\n b]"},
		{[]byte{1, 2, 3, 4}, "", 9, "<<1,2,3,\n  4>>"},
		{[]byte{1, 2}, "", -1, "<<1,\n2>>"},
		{nil, "", 80, "#Error<etf: a <nil> is not a term>"},
		{etf.Tuple{etf.Atom("a"), etf.List{etf.String("b"), etf.List{}, int64(1)}}, "", 80, `{a,["b",[],1]}`},
		{[]byte("abc\x00"), "", 80, "<<97,98,99,0>>"},
		{etf.List{int64(1<<32 + 'a'), int64('a' - 1<<32)}, "", 80, "[4294967393,-4294967199]"},
		{etf.List{etf.Atom("a")}, "", 80, "[a]"},
		{etf.NewPid("a@b", 1, 2, 3), "", 80, "<0.1.2>"},
	} {
		if got := string(Pretty([]byte(test.dst), test.term, test.width)); got != test.want {
			t.Errorf("%v: %q, want %q", test.term, got, test.want)
		}
	}
}

// Lists of Latin-1 characters are printed as text. Lists with control characters other than \b, \t,
// \n, \v, \f, \r and \e are not.
func TestPrintable(t *testing.T) {
	const text = "\b\t\n\v\f\r\x1b !}~\u00a0ÿ"
	for c := range rune(0x102) {
		want := strings.ContainsRune(text, c) || c > ' ' && c < '~' || c > 0xa0 && c < 0xff
		if got := printable([]rune{'a', c}); got != want {
			t.Errorf("%q is printable: %t, want %t", c, got, want)
		}
	}
}

// Terms of all kinds can be printed at any width. Indents are at most half of it, and no line ends
// in a space.
func FuzzPretty(f *testing.F) {
	for _, row := range rows(f, vectors) {
		src, err := hex.DecodeString(row[1])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, 40)
	}
	f.Fuzz(func(t *testing.T, src []byte, width int) {
		term, err := etf.Decode(src)
		if err != nil {
			return
		}
		words := strings.Fields(flat(term))
		text := string(Pretty(nil, term, width))
		if got := strings.Fields(text); strings.Join(got, "") != strings.Join(words, "") {
			t.Fatalf("%s is printed as %s", words, got)
		}
		for line := range strings.SplitSeq(text, "\n") {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			if width > 0 && indent > width/2 || width > 0 && strings.HasSuffix(line, " ") {
				t.Fatalf("width %d: a line of %d characters is indented too far or ends in a space: %q",
					width, utf8.RuneCountInString(line), line)
			}
		}
	})
}
