package erltext

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

// rows returns the rows of a file, split into fields.
func rows(t testing.TB, file string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return all
}

// literal parses one term.
func literal(t testing.TB, text string) etf.Term {
	t.Helper()
	exprs, rest, err := Parse(text + " .")
	if err != nil || rest != "" || len(exprs) != 1 {
		t.Fatalf("%s: %d expressions, rest %q, %v", text, len(exprs), rest, err)
	}
	l, ok := exprs[0].(*Literal)
	if !ok {
		t.Fatalf("%s is a %T", text, exprs[0])
	}
	return l.Term
}

// refused matches expressions that Parse refuses, but that the shell refuses only when it evaluates
// them.
var refused = regexp.MustCompile(`a:1\(|a:\(b\)|:b\.|#a\{|\|\||<<\{\}>>|<<1\.5>>`)

// Parse refuses what the Erlang shell refuses. What the shell accepts, Parse accepts or reports as
// not supported.
func TestSyntax(t *testing.T) {
	for _, row := range rows(t, "testdata/syntax.tsv") {
		var text strings.Builder
		elements, _ := elementsOf(literal(t, row[0]))
		for _, c := range elements {
			text.WriteRune(rune(c.(int64)))
		}
		exprs, _, err := Parse(text.String())
		switch {
		case err == nil && len(exprs) > 0 && row[1] != "ok":
			t.Errorf("%s: Parse accepts it, want %s", row[0], row[1])
		case err != nil && row[1] == "ok" &&
			!strings.Contains(err.Error(), "not supported: ") && !refused.MatchString(row[0]):
			t.Errorf("%s: %v", row[0], err)
		}
	}
}

// flat returns the text of a term on one line.
func flat(t etf.Term) string { return string(etf.Format(nil, t)) }

const vectors = "../../etf/testdata/vectors.tsv" // text and external bytes in hex

// Pretty prints terms as Erlang prints them on one line, and Parse reads the same terms back, except for pids,
// references, ports and funs with an environment, which cannot be parsed.
func TestVectors(t *testing.T) {
	parsed := 0
	for _, row := range rows(t, vectors) {
		src, err := hex.DecodeString(row[1])
		if err != nil {
			t.Fatal(err)
		}
		want, err := etf.Decode(src)
		_, isFloat := want.(float64) // Erlang may choose another form, with or without an exponent
		if got := flat(want); err != nil || got != row[0] && !isFloat {
			t.Errorf("%.80s, want %.80s, %v", got, row[0], err)
		}
		if strings.Contains(row[0], "#Ref<") || strings.Contains(row[0], "<0.") || strings.Contains(row[0], "#Port<") ||
			strings.Contains(row[0], "#Fun<") {
			continue
		}
		if got := literal(t, row[0]); !Equal(got, want) {
			t.Errorf("%.80s is parsed as %.80s", row[0], flat(got))
		}
		parsed++
	}
	if parsed < 100 {
		t.Errorf("only %d terms are parsed, want at least 100", parsed)
	}
}

func TestParseLiterals(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"16#FF", "255"}, {"1_000_000", "1000000"}, {"36#zZ", "1295"}, {"- - 5", "5"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"+ 1.5e30", "1.5e30"}, {"-0.0", "-0.0"}, {"$a", "97"}, {`$\n`, "10"}, {`$\x{1F600}`, "128512"}, {`$\^A`, "1"},
		{`$\101`, "65"}, {`$\7`, "7"}, {"$ ", "32"},
		{"'a b'", "'a b'"}, {`'\x41\102\s\''`, `'AB \''`}, {"maybe", "maybe"}, {"été@x", "été@x"},
		{`"a" "b" % comment` + "\n" + ` "c"`, `"abc"`}, {`""`, "[]"}, {`"\x{400}"`, "[1024]"},
		{"[1,2|[3|[4]]]", "[1,2,3,4]"}, {`[$a|"bc"]`, `"abc"`}, {"[a|b]", "[a|b]"}, {"((a))", "a"},
		{"#{b=>1, a=>2, b=>3}", "#{a => 2,b => 3}"},
		{"#{1.0=>a,2=>b,x=>#{},[]=>[],<<>>=>{}}", "#{1.0 => a,2 => b,[] => [],<<>> => {},x => #{}}"},
		{"<<1,300,-1>>", "<<1,44,255>>"}, {"<<5:3>>", "<<5:3>>"}, {"<<5:3,2:5>>", `<<"¢">>`},
		{"<<1:1,2:16,3:7>>", "<<128,1,3>>"},
		{`<<"ab",$c>>`, `<<"abc">>`}, {`<<"é"/utf8>>`, `<<"é"/utf8>>`}, {`<<"ab":16>>`, "<<0,97,0,98>>"},
		{"<<258:16/little>>", "<<2,1>>"},
		{"<<258:12/little>>", "<<2,1:4>>"}, {"<<1.5/float>>", "<<63,248,0,0,0,0,0,0>>"},
		{"<<1.5:32/float>>", "<<63,192,0,0>>"},
		{"<<1642000000000:64,2:48,7:16>>", "<<0,0,1,126,78,211,164,0,0,0,0,0,0,2,0,7>>"}, {"<< >>", "<<>>"},
		{"<<7:0>>", "<<>>"}, {"<<(3):(4)>>", "<<3:4>>"},
		{"[{a, fun 'M x' : f/255}]", "[{a,fun 'M x':f/255}]"},
	} {
		if got := flat(literal(t, test.text)); got != test.want {
			t.Errorf("%s is %s, want %s", test.text, got, test.want)
		}
	}
}

// A string of bytes is held as bytes.
func TestStrings(t *testing.T) {
	for text, want := range map[string]etf.Term{
		`"aÿ"`: etf.String("a\xff"), `"aĀ"`: etf.List{int64('a'), int64('Ā')}, `""`: etf.List(nil),
	} {
		if got := literal(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is the %T %v", text, got, got)
		}
	}
}

func TestCalls(t *testing.T) {
	exprs, _, err := Parse("f(), m:'F'(X, 2).")
	if err != nil {
		t.Fatal(err)
	}
	local, remote := exprs[0].(*Call), exprs[1].(*Call)
	if local.Module != "" || local.Function != "f" || len(local.Args) != 0 ||
		remote.Module != "m" || remote.Function != "F" || len(remote.Args) != 2 {
		t.Errorf("%+v, %+v", local, remote)
	}
}

// An error says whether the text is wrong, or only not supported here.
func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		").":                      "syntax error before: ')'",
		"a 'div'.":                "syntax error before: 'div'",
		"a div b.":                "not supported: 'div'",
		"begin a end.":            "not supported: 'begin'",
		"'a":                      "unterminated: 'a",
		strings.Repeat("[", 600):  "nested deeper than 512",
		strings.Repeat("<<", 600): "nested deeper than 512",
	} {
		if _, _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %s", text, err, want)
		}
	}
}

// A value that is not a term equals nothing, not even itself.
func TestEqualInvalid(t *testing.T) {
	if invalid := (etf.Tuple{1}); Equal(invalid, invalid) {
		t.Errorf("%v is equal to itself", invalid)
	}
}

func TestParseForms(t *testing.T) {
	for _, test := range []struct {
		text string
		n    int
		rest string
		err  string
	}{
		{"a, f(X), {m:f([1]), Y = b}. rest", 3, "rest", ""},
		{"a.\nb.\n", 1, "b.\n", ""},
		{"{a,\n", 0, "", "incomplete"},
		{"'a.\n", 0, "", "incomplete"},
		{" \n", 0, "", ""},
		{" % nothing", 0, "", ""},
		{"a b", 0, "", "incomplete"},
		{"a b 'c", 0, "", "incomplete"},
		{"a b 37#1.\nc.", 0, "c.", "1:5"},
		{"a }. b.", 0, "b.", "1:3"},
		{"37#1. b.\nc.", 0, "c.", "1:1"},
		{"\xff.\nc.", 0, "", "1:1"},
		{"a + b.", 0, "", "1:3"},
		{"f() = a.", 0, "", "1:1"},
		{"<<1:9999999999>>.", 0, "", "1:5"},
		{`<<"abc":8388608>>.`, 0, "", "1:1"},
		{strings.Repeat("[", 513) + ".", 0, "", "1:513"},
		{strings.Repeat("#{", 100) + "1" + strings.Repeat("=>1}", 100) + ".", 1, "", ""},
		{strings.Repeat("1", 20000) + ".", 0, "", "1:1"},
		{strings.Repeat("1", maxDigits) + ".", 1, "", ""},
		{strings.Repeat("<<", 511) + strings.Repeat(">>/binary,1", 510) + ">>.", 1, "", ""},
		{strings.Repeat("<<", 512) + strings.Repeat(">>/binary,1", 511) + ">>.", 0, "", "1:1025"},
		{strings.Repeat("<<1>>,", 600) + "a.", 601, "", ""},
		{strings.Repeat(" ", MaxTextBytes-2) + "1.", 1, "", ""},
		{strings.Repeat("a", 255) + ".", 1, "", ""},
		{strings.Repeat("a", 256) + ".", 0, "", "1:1"},
		{strings.Repeat("A", 256) + ".", 0, "", "1:1"},
		{`"` + strings.Repeat("a", 256) + `".`, 1, "", ""},
		{"a,\n b }.", 0, "", "2:4"},
		{"a \\ b. c.", 0, "", "1:3"},
		{`"\x{D800}".`, 0, "", "1:1"},
		{"a.%c\nb.", 1, "%c\nb.", ""},
		{"{'}'}.", 1, "", ""},
		{"a:. b.", 0, "b.", "1:3"},
		{"a:1().", 0, "", "1:3"},
		{"+a.", 0, "", "1:1"},
		{"fun X:f/1.", 0, "", "1:1"},
		{"fun a:b/256.", 0, "", "1:1"},
		{"fun a:b/c.", 0, "", "1:1"},
		{"fun a:b/1.5.", 0, "", "1:1"},
		{"<<X:a>>.", 0, "", "1:5"},
		{"<<X:(-1)>>.", 0, "", "1:5"},
		{"<<X:1048576/binary>>.", 1, "", ""},
		{"<<X:1048577/binary>>.", 0, "", "1:4"},
		{"<<X:8/utf8>>.", 0, "", "1:4"},
		{"<<X:0/utf8>>.", 0, "", "1:4"},
		{`<<1/"integer">>.`, 0, "", "1:5"},
		{strings.Repeat(" ", MaxTextBytes) + "1.", 0, "", "1:1"},
	} {
		exprs, rest, err := Parse(test.text)
		place := ""
		var wrong *Error
		if errors.As(err, &wrong) {
			place = fmt.Sprintf("%d:%d", wrong.Line, wrong.Column)
			if wrong.Incomplete {
				place = "incomplete"
			}
		}
		if len(exprs) != test.n || rest != test.rest || place != test.err {
			t.Errorf("%.40q: %d expressions, rest %q, error %v", test.text, len(exprs), rest, err)
		}
	}
}

// Any text is parsed or refused. Terms that Pretty prints, on one line or several, are parsed as the same terms.
func FuzzParse(f *testing.F) {
	for _, row := range rows(f, "testdata/syntax.tsv") {
		f.Add(row[0] + ".")
	}
	for _, row := range rows(f, vectors) {
		f.Add(row[0] + ".")
	}
	f.Fuzz(func(t *testing.T, text string) {
		exprs, rest, err := Parse(text)
		if err == nil && !strings.HasSuffix(text, rest) || err != nil && len(exprs) > 0 {
			t.Fatalf("%q: %d expressions, rest %q, %v", text, len(exprs), rest, err)
		}
		for _, e := range exprs {
			l, ok := e.(*Literal)
			if !ok {
				continue
			}
			printed := flat(l.Term)
			if again := literal(t, printed); !Equal(again, l.Term) {
				t.Fatalf("%s is parsed as %s", printed, flat(again))
			}
			text := string(etf.Pretty(nil, l.Term, 80))
			if again := literal(t, text); !Equal(again, l.Term) {
				t.Fatalf("%s is parsed as another term after line breaks are added: %s", printed, text)
			}
		}
	})
}
