package etf

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFormatRawLimit(t *testing.T) {
	for _, test := range []struct {
		src   string
		limit int
		want  string
	}{
		{"w\x05hello", -1, ""},
		{"w\x05hello", 0, ""},
		{"w\x05hello", 1, "."},
		{"w\x05hello", 3, "..."},
		{"w\x05hello", 4, "h..."},
		{"w\x05hello", 5, "hello"},
		{"\x83w\x05hello", 5, "hello"},
		{"w\x05hellox", 9, "hello..."},
		{"k\x00\x02\xe9\xe9", 6, `"éé"`},
		{"k\x00\x02\xe9\xe9", 5, `"...`},
		{"h\x03w\x02oka\x01m\x00\x00\x00\x05hello", 100, `{ok,1,<<"hello">>}`},
		{"h\x03w\x02oka\x01m\x00\x00\x00\x05hello", 13, `{ok,1,<<"h...`},
		{"h\x02w\x02ok\x00", 100, "{ok,..."},
		{"", 100, "..."},
		{"o\x00\x00\x20\x01\x00" + strings.Repeat("\x01", 8193), 1 << 20, "..."},
		{"u\x00\x00\x00\x01" + pidTerm + "w\x01ma\x01a\x02h\x01j", 100, "#Fun<m.1.2>"},
		{"u\x00\x00\x00\x00" + pidTerm + "w\x02m\na\x01a\x02", 100, `#Fun<m\n.1.2>`},
		{"qw\x01mw\x02'fa\x03", 100, `fun m:'\'f'/3`},
		{"w\x00", 100, "''"},
		{"w\x06node@h", 100, "node@h"},
		{"w\x05\"\\\xd0\x96\x00", 100, `'"\\Ж\000'`},
		{"w\x06\xe2\x80\xaeabc", 100, `'\x{202E}abc'`},
		{"w\x03end", 100, "'end'"},
		{"a\xff", 100, "255"},
		{"n\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01", 100, "-18446744073709551616"},
		{"F\x3f\xf0\x00\x00\x00\x00\x00\x00", 100, "1.0"},
		{"F\x3e\xe4\xf8\xb5\x88\xe3\x68\xf1", 100, "1.0e-5"},
		{"F\x3f\xf8\x00\x00\x00\x00\x00\x00", 100, "1.5"},
		{"F\x44\xb5\x2d\x02\xc7\xe1\x4a\xf6", 100, "1.0e23"},
		{"M\x00\x00\x00\x02\x03\x01\xa0", 100, "<<1,5:3>>"},
		{"M\x00\x00\x00\x01\x03\x60", 100, "<<3:3>>"},
		{"m\x00\x00\x00\x00", 100, "<<>>"},
		{"m\x00\x00\x00\x02\x00\xff", 100, "<<0,255>>"},
		{"k\x00\x02a\x07", 100, "[97,7]"},
		{"k\x00\x02\"\t", 100, `"\"\t"`},
		{"m\x00\x00\x00\x04a\xc3\xa9b", 100, `<<"aéb"/utf8>>`},
		{"m\x00\x00\x00\x04a\xc3\xa9b", 8, `<<"a...`},
		{"l\x00\x00\x00\x02jja\x01", 100, "[[],[]|1]"},
		{"l\x00\x00\x00\x02a\x61a\xe9j", 100, `"aé"`},
		{"l\x00\x00\x00\x02a\x61a\xe9a\x61", 100, "[97,233|97]"},
		{"l\x00\x00\x00\x05a\x61a\x61a\x61a\x61a\x61j", 6, `"aa...`},
		{"l\x00\x00\x00\x02jjj", 100, "[[],[]]"},
		{"t\x00\x00\x00\x02w\x01aa\x01h\x00j", 100, "#{a => 1,{} => []}"},
		{pidTerm, 100, "<0.1.2>"},
		{"x" + node + "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03", 100, "#Port<0.4294967298>"},
		{"Z\x00\x02" + node + "\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x02", 100, "#Ref<0.2.1>"},
	} {
		got := string(FormatRaw([]byte("dst"), []byte(test.src), test.limit))
		if got != "dst"+test.want {
			t.Errorf("%.40q, %d: %.80s, want %s", test.src, test.limit, got, test.want)
		}
	}
}

// Atoms are in quotes unless Erlang reads them without; a string is one if all of it can be printed.
func TestQuotes(t *testing.T) {
	plain := regexp.MustCompile(`^[a-zß-öø-ÿ][a-zA-Z0-9_@À-ÖØ-öø-ÿ]*$`)
	for c := range rune(256) {
		for _, text := range []string{string(c), "a" + string(c)} {
			got := string(Format(nil, Atom(text)))
			if quotes := strings.HasPrefix(got, "'"); quotes == plain.MatchString(text) {
				t.Errorf("the atom of %q: %s", text, got)
			}
		}
		got := string(Format(nil, String([]byte{byte(c)})))
		shown := c >= ' ' && c <= '~' || c >= 0xa0 || strings.ContainsRune("\b\t\n\v\f\r\x1b", c)
		if quotes := strings.HasPrefix(got, `"`); quotes != shown {
			t.Errorf("the string of %q: %s", c, got)
		}
	}
}

// Text cut at any limit is UTF-8, and begins like the whole text.
func TestFormatRawCuts(t *testing.T) {
	for _, v := range vectors(t, "vectors.tsv") {
		whole := string(FormatRaw(nil, v.src, 1<<20))
		for limit := range min(len(whole), 300) {
			got := string(FormatRaw(nil, v.src, limit))
			text, cut := strings.CutSuffix(got, "...")
			switch {
			case len(got) > limit || !utf8.ValidString(got):
				t.Errorf("%.60s, %d: %q", v.text, limit, got)
			case limit >= 3 && (!cut || !strings.HasPrefix(whole, text)):
				t.Errorf("%.60s, %d: %q", v.text, limit, got)
			}
		}
	}
}

func TestPretty(t *testing.T) {
	for _, test := range []struct {
		term  Term
		dst   string
		width int
		want  string
	}{
		{List{int64(1), int64(2), int64(3)}, "", 80, "[1,2,3]"},
		{List{int64(1), int64(2), int64(3)}, "", 6, "[1,2,\n 3]"},
		{List{int64(1), int64(2), int64(3)}, "x = ", 10, "x = [1,2,\n     3]"},
		{List{int64(1), int64(2), int64(3)}, "a long prefix: ", 8, "a long prefix: [1,\n    2,3]"},
		{List{int64('}'), int64('~')}, "", 80, `"}~"`},
		{Tuple{Atom("ok"), List{Atom("abcd"), Atom("efgh")}}, "", 14, "{ok,\n [abcd,efgh]}"},
		{Tuple{Atom("ok"), List{Atom("abcd"), Atom("efgh")}}, "", 10, "{ok,\n [abcd,\n  efgh]}"},
		{Map{{Key: Atom("abcdef"), Value: Tuple{Atom("ghi"), Atom("jkl")}}}, "", 16,
			"#{abcdef =>\n  {ghi,jkl}}"},
		{ImproperList{Elements: []Term{Atom("a")}, Tail: Atom("b")}, "", 3, "[a|\n b]"},
		{[]byte{1, 2, 3, 4}, "", 9, "<<1,2,3,\n  4>>"},
		{[]byte{1, 2}, "", -1, "<<1,\n2>>"},
		{nil, "", 80, "#Error<etf: a <nil> is not a term>"},
		{Tuple{Atom("a"), List{String("b"), List{}, int64(1)}}, "", 80, `{a,["b",[],1]}`},
		{[]byte("abc\x00"), "", 80, "<<97,98,99,0>>"},
		{List{int64(1<<32 + 'a'), int64('a' - 1<<32)}, "", 80, "[4294967393,-4294967199]"},
		{List{Atom("a")}, "", 80, "[a]"},
		{NewPid("a@b", 1, 2, 3), "", 80, "<0.1.2>"},
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
		if got := printable(string([]rune{'a', c})); got != want {
			t.Errorf("%q is printable: %t, want %t", c, got, want)
		}
	}
}

// Terms of all kinds can be printed at any width. Indents are at most half of it, and no line ends
// in a space.
func FuzzPretty(f *testing.F) {
	for _, v := range vectors(f, "vectors.tsv") {
		f.Add(v.src, 40)
	}
	f.Fuzz(func(t *testing.T, src []byte, width int) {
		term, err := Decode(src)
		if err != nil {
			return
		}
		words := strings.Fields(string(Format(nil, term)))
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
