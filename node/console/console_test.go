package console

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flake-go/flake/node/etf"
)

// table holds functions by name, some of which imitate Erlang's.
type table map[string]func(args []etf.Term) (etf.Term, error)

func (t table) call(module, function etf.Atom, args []etf.Term) (etf.Term, error) {
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
	"t:badarg": func([]etf.Term) (etf.Term, error) {
		return nil, &Exception{Class: "error", Reason: etf.Atom("badarg")}
	},
	"t:exit":  raise("exit"),
	"t:sleep": func([]etf.Term) (etf.Term, error) { time.Sleep(time.Hour); return ok, nil },
}

// script is an editor that reads prepared lines.
type script struct{ *bufio.Scanner }

func (s script) readLine(string) (string, error) {
	if !s.Scan() {
		return "", io.EOF
	}
	return s.Text(), nil
}

func (s script) width() int { return defaultWidth }

// run returns what a Console prints for an input.
func run(t *testing.T, input string) string {
	t.Helper()
	var out bytes.Buffer
	c := New(Options{Out: &out, Functions: functions.call, Help: []Section{{"tests", []Help{{"t:badarg(Any)", "fails"}}}}})
	if err := c.serve(context.Background(), script{bufio.NewScanner(strings.NewReader(input))}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var prompts = regexp.MustCompile(`(?m)^\d+> (\*\*\* Terminating .*\n)?`)

// A Console prints what erl printed for the same input. The output of erl is in testdata.
func TestSessions(t *testing.T) {
	sessions, _ := filepath.Glob("testdata/*.txt")
	if len(sessions) == 0 {
		t.Fatal("no sessions")
	}
	// erl omits functions that raise exceptions, such as exit/1, from the stack.
	stack := regexp.MustCompile(`(?m)^     in function  (throw|exit|error)/1\n(        called as .*\n)?`)
	for _, session := range sessions {
		input, err := os.ReadFile(session)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(session, ".txt") + ".out")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(stack.ReplaceAllString(run(t, string(input)), ""), "\n")
		for i, line := range strings.Split(prompts.ReplaceAllString(string(want), ""), "\n") {
			if i >= len(got) || got[i] != line {
				t.Fatalf("%s, line %d of the output: want %q in\n%s", session, i+1, line, strings.Join(got, "\n"))
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{"t:broken().",
			"** exception error: <<\"out of order\">>\n     in function  t:broken/0\n        called as t:broken()\n"},
		{"t:badarg(255,[$a]).",
			"** exception error: bad argument\n     in function  t:badarg/2\n        called as t:badarg(255,\"a\")\n"},
		{"t:exit(normal).", "** exception exit: normal\n     in function  t:exit/1\n"},
		{"<<a:8>>.", "* 1:1: part of a binary is not of type integer\n"},
		{"X = 1, <<X/binary>>.", "** exception error: bad argument\n"},
		{"1 + 1.", "* 1:3: not supported: '+'\n"},
		{"X = 1, q(). 2.", "ok\n"},
		{"X = 1, t:exit(X). X.", "** exception exit: 1\n     in function  t:exit/1\n* 1:1: variable 'X' is unbound\n"},
	} {
		if got := run(t, test.input+"\n"); got != test.want {
			t.Errorf("%s\n got %q\nwant %q", test.input, got, test.want)
		}
	}
}

// Long values are cut.
func TestLongValue(t *testing.T) {
	got := run(t, "<<0:80000>>.\n"+`"`+strings.Repeat("é", 5000)+"\".\n")
	if len(got) > 3*maxValueBytes || !utf8.ValidString(got) || strings.Count(got, "...\n") != 2 {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}

func TestEval(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"X = node(), {X, [1|X]}.", "{nonode@nohost,[1|nonode@nohost]}"},
		{"t:broken.", "1:9: syntax error before: '.'"},
		{"<<T:64,_/binary>> = <<1:64,2:64>>, <<T:8>>.", "<<1>>"},
		{"{a, erlang:node()}. ignored", "{a,nonode@nohost}"},
		{" % nothing", "1:1: nothing to evaluate"},
		{"{a, B}.", "1:5: variable 'B' is unbound"},
		{"{a, }.", "1:5: syntax error before: '}'"},
		{"q().", "** exception error: undefined shell command q/0"},
		{"t:q().", "** exception error: undefined function t:q/0"},
		{"X = 1,\n <<a, X>>.", "2:2: part of a binary is not of type integer"},
		{"<<(node()), (t:q())/binary>>.", "** exception error: bad argument"},
		{"-(-9223372036854775808).", "9223372036854775808"},
	} {
		text, err := Eval(context.Background(), functions.call, test.text)
		got := string(text)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

// A short text cannot build a term that takes much memory, even with variables that are used often.
func TestEvalLimits(t *testing.T) {
	const limit = "** exception error: a system limit has been reached"
	grow := func(times int, first, next string) string {
		text := strings.Builder{}
		fmt.Fprintf(&text, "A0 = %s", first)
		for i := range times {
			text.WriteString(strings.NewReplacer("A", fmt.Sprint(", A", i+1), "B", fmt.Sprint("A", i)).Replace(next))
		}
		return text.String() + "."
	}
	half := strings.TrimSuffix(grow(15, "{}", "A = {B, B}"), ".") // A15 has half of the elements that are allowed
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{grow(12, "{}", "A = {B, B}"), true},
		{grow(60, "{}", "A = {B, B}"), false},
		{grow(60, "[1]", "A = [B, B]"), false},
		{grow(60, "[1]", "A = #{1 => B, 2 => B}"), false},
		{grow(60, "1", "A = #{B => B}"), false},
		{grow(60, "[1]", "A = [B | B]"), false},
		{grow(60, "{}", "A = [1, B | {B, B}]"), false},
		{grow(400, "{}", "A = {B}"), true},
		{grow(600, "{}", "A = {B}"), false},
		{half + ", {A15, A15}, 1.", true},
		{half + ", {A15, A15, A15}.", false},
		{half + ", t:badarg({A15, A15, A15}).", false},
		{half + ", t:badarg(A15, A15, A15).", false},
		{half + ", #{A15 => 1, {A15} => 2, [A15] => 3}.", false},
		{"A = <<0:65536>>, B = {" + strings.Repeat("A, ", 1<<11-1) + "A}, 1.", true},
		{"A = <<0:65536>>, B = {" + strings.Repeat("A, ", 1<<11) + "A}, 1.", false},
	} {
		text, err := Eval(t.Context(), functions.call, tt.text)
		if tt.ok != (err == nil) || err != nil && err.Error() != limit {
			t.Errorf("%.60s: %d bytes, %.100v", tt.text, len(text), err)
		}
	}
}

func TestHelp(t *testing.T) {
	got := run(t, "help().\n")
	for _, call := range []string{"b()", "f(X)", "q()", "t:badarg(Any)"} {
		if !strings.Contains(got, "\n"+call) {
			t.Errorf("no %q in %q", call, got)
		}
	}
}
