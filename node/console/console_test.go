package console

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// table is a few functions, as far as may be those of Erlang.
type table map[string]func(args []etf.Term) (etf.Term, error)

func (t table) Call(module, function etf.Atom, args []etf.Term) (etf.Term, error) {
	call, ok := t[string(module)+":"+string(function)]
	if !ok {
		return nil, &Exception{Class: "error", Reason: etf.Atom("undef")}
	}
	return call(args)
}

func raise(class string) func([]etf.Term) (etf.Term, error) {
	return func(args []etf.Term) (etf.Term, error) { return nil, &Exception{Class: class, Reason: args[0]} }
}

var functions = table{
	"erlang:node":  func([]etf.Term) (etf.Term, error) { return etf.Atom("nonode@nohost"), nil },
	"erlang:nodes": func([]etf.Term) (etf.Term, error) { return etf.List(nil), nil },
	"erlang:throw": raise("throw"),
	"erlang:exit":  raise("exit"),
	"erlang:error": raise("error"),
	"t:broken":     func([]etf.Term) (etf.Term, error) { return nil, errors.New("out of order") },
	"t:badarg":     func([]etf.Term) (etf.Term, error) { return nil, &Exception{Class: "error", Reason: etf.Atom("badarg")} },
	"t:clause": func([]etf.Term) (etf.Term, error) {
		return nil, &Exception{Class: "error", Reason: etf.Atom("function_clause")}
	},
	"t:exit":  raise("exit"),
	"t:sleep": func([]etf.Term) (etf.Term, error) { time.Sleep(time.Hour); return ok, nil },
}

// run returns what is printed for an input.
func run(t *testing.T, input, node string) string {
	t.Helper()
	var out bytes.Buffer
	c := New(Options{Node: node, In: strings.NewReader(input), Out: &out, Functions: functions, Help: []Section{
		{"tests", []Help{{"t:badarg(Any)", "fails"}}},
	}})
	if err := c.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// erl's own functions that raise errors are not in the stack that it prints.
var stack = regexp.MustCompile(`(?m)^     in function  (throw|exit|error)/1\n(        called as .*\n( {20}.*\n)*)?`)

// Sessions are, byte for byte, those of erl.
func TestSessions(t *testing.T) {
	sessions, _ := filepath.Glob("testdata/*.txt")
	if len(sessions) == 0 {
		t.Fatal("no sessions")
	}
	for _, session := range sessions {
		input, err := os.ReadFile(session)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(session, ".txt") + ".out")
		if err != nil {
			t.Fatal(err)
		}
		got := stack.ReplaceAllString(run(t, string(input), ""), "")
		compare(t, session, got, string(want))
	}
}

func compare(t *testing.T, session, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	a, b := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s, line %d:\n got %q\nwant %q", session, i+1, a[i], b[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d\n%s", session, len(a), len(b), got)
}

// What differs from erl on purpose, or has no counterpart there.
func TestAnswers(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{"t:broken().", "** exception error: <<\"out of order\">>\n     in function  t:broken/0\n        called as t:broken()"},
		{"t:badarg(255,99).", "** exception error: bad argument\n     in function  t:badarg/2\n        called as t:badarg(255,99)"},
		{"t:badarg([$a],{b}).", "** exception error: bad argument\n     in function  t:badarg/2\n        called as t:badarg(\"a\",{b})"},
		{"t:clause(#{a=>1}).", "** exception error: no function clause matching t:clause(#{a => 1})"},
		{"t:exit(normal).", "** exception exit: normal\n     in function  t:exit/1"},
		{"t:badarg(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,#{bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb=>1,cccccccccccccccccccccccc=>2}).",
			"** exception error: bad argument\n     in function  t:badarg/2\n        called as t:badarg(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,\n" +
				"                           #{bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb => 1,\n                             cccccccccccccccccccccccc => 2})"},
		{"1 + 1.", "* 1:3: not supported: '+'"},
		{"{q()}.", "ok"},
	} {
		got := run(t, test.input, "n@h")
		got = strings.TrimPrefix(got, "(n@h)1> ")
		got = strings.TrimSuffix(regexp.MustCompile(`\(n@h\)\d> \*\*\* Terminating erlang \(n@h\)\n$`).ReplaceAllString(got, ""), "\n")
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.input, got, test.want)
		}
	}
}

func TestEval(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"X = node(), {X, [1|X]}.", "{nonode@nohost,[1|nonode@nohost]}"},
		{"t:broken.", "1:1: illegal expression"},
		{"{a, erlang:node()}. ignored", "{a,nonode@nohost}"},
		{" % nothing", "1:1: nothing to evaluate"},
		{"{a, B}.", "1:5: variable 'B' is unbound"},
		{"{a, }.", "1:5: syntax error before: '}'"},
		{"q().", "** exception error: undefined shell command q/0"},
		{"t:q().", "** exception error: undefined function t:q/0"},
	} {
		text, err := Eval(context.Background(), functions, test.text)
		got := string(text)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

func TestHelp(t *testing.T) {
	got := run(t, "help().\nq().", "")
	for _, want := range []string{"1> ** shell internal commands **\n", "q()        -- quit - stops the node\n", "** tests **\nt:badarg(Any) -- fails\n", "true\n2> ok\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// Run ends when it is told to, whatever it waits for, and when the input fails.
func TestRunEnds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, input := range []string{"", "t:sleep().\n"} {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		w.WriteString(input)
		c := New(Options{In: r, Out: new(bytes.Buffer), Functions: functions})
		if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q: %v", input, err)
		}
	}
	c := New(Options{In: iotest.ErrReader(os.ErrPermission), Out: new(bytes.Buffer)})
	if err := c.Run(context.Background()); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}

// On a terminal, values and errors have its width, as in erl.
func TestWidth(t *testing.T) {
	for _, test := range []struct {
		width       int
		class, text string
		want        string
	}{
		{30, "throw", `{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,{bbbbbbbbbbbbbbbbbbbb,"cccccccccccccccccccccccccccccccccccc"}}`,
			`** exception throw: {aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,
                     {bbbbbbbbbbbbbbbbbbbb,
                      "cccccccccccccccccccccccccccccccccccc"}}`},
		{120, "throw", `{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,{bbbbbbbbbbbbbbbbbbbb,"cccccccccccccccccccccccccccccccccccc"}}`,
			`** exception throw: {aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,
                        {bbbbbbbbbbbbbbbbbbbb,
                            "cccccccccccccccccccccccccccccccccccc"}}`},
		{30, "", "[{aaaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbbbb,ccc}]", `[{aaaaaaaaaaaaaaaaa,
     bbbbbbbbbbbbbbbbbb,
     ccc}]`},
		{30, "", "<<0:400>>", "<<0,0,0,0,0,0,0,0,0,0,0,0,0,\n  0,0,0,0,0,0,0,0,0,0,0,0,0,\n  0,0,0,...>>"},
		{120, "", "<<0:400>>", "<<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,\n  0,...>>"},
	} {
		exprs, _, err := erltext.Parse(test.text+".", false)
		if err != nil {
			t.Fatal(err)
		}
		value := exprs[0].(*erltext.Literal).Term
		got := string(appendTerm(nil, value, test.width))
		if test.class != "" {
			got = string((&Exception{Class: test.class, Reason: value}).text(test.width))
		}
		if got != test.want {
			t.Errorf("%s, %d columns:\n%s\nwant\n%s", test.text, test.width, got, test.want)
		}
	}
}
