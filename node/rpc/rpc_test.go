package rpc

import (
	"errors"
	"testing"

	"github.com/flake-go/flake/node/etf"
)

var table = Table{
	{"m", "add", 2}: func(args []etf.Term) (etf.Term, error) {
		a, ok1 := args[0].(int64)
		b, ok2 := args[1].(int64)
		if !ok1 || !ok2 {
			return nil, BadArgument()
		}
		return a + b, nil
	},
	{"m", "exit", 1}:  func(args []etf.Term) (etf.Term, error) { return nil, &Exception{Class: Exit, Reason: args[0]} },
	{"m", "throw", 1}: func(args []etf.Term) (etf.Term, error) { return nil, &Exception{Class: Throw, Reason: args[0]} },
	{"m", "fail", 0}:  func([]etf.Term) (etf.Term, error) { return nil, errors.New("broken") },
}

// calls are functions with what comes of them by each road.
var calls = map[string]struct {
	module, function etf.Atom
	args             etf.Term
	erpc, rex, spawn string
}{
	"a result":       {"m", "add", etf.List{int64(1), int64(2)}, "{ref,return,3}", "3", "normal"},
	"of a string":    {"m", "add", etf.String("ab"), "{ref,return,195}", "195", "normal"},
	"a bad argument": {"m", "add", etf.List{int64(1), etf.Atom("x")}, "{ref,error,badarg,[{m,add,[1,x],[]}]}", "{badrpc,{'EXIT',{badarg,[{m,add,[1,x],[]}]}}}", "{badarg,[{m,add,[1,x],[]}]}"},
	"not there":      {"os", "cmd", etf.List{etf.String("ls")}, `{ref,error,undef,[{os,cmd,["ls"],[]}]}`, `{badrpc,{'EXIT',{undef,[{os,cmd,["ls"],[]}]}}}`, `{undef,[{os,cmd,["ls"],[]}]}`},
	"wrong arity":    {"m", "add", etf.List{int64(1)}, "{ref,error,undef,[{m,add,[1],[]}]}", "{badrpc,{'EXIT',{undef,[{m,add,[1],[]}]}}}", "{undef,[{m,add,[1],[]}]}"},
	"an exit":        {"m", "exit", etf.List{etf.Atom("why")}, "{ref,exit,why}", "{badrpc,{'EXIT',why}}", "why"},
	"a throw":        {"m", "throw", etf.List{etf.Atom("it")}, "{ref,throw,it}", "it", "{{nocatch,it},[]}"},
	"another error":  {"m", "fail", etf.List(nil), `{ref,error,"broken",[{m,fail,[],[]}]}`, `{badrpc,{'EXIT',{"broken",[{m,fail,[],[]}]}}}`, `{"broken",[{m,fail,[],[]}]}`},
}

func text(t etf.Term) string { return string(etf.Format(nil, t)) }

func TestRun(t *testing.T) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			args, _ := etf.Elements(c.args)
			if got := text(table.Run(c.module, c.function, args)); got != c.spawn {
				t.Errorf("spawned: %s, want %s", got, c.spawn)
			}
			call := []etf.Term{etf.Atom("ref"), c.module, c.function, c.args}
			if got := text(table.Run("erpc", "execute_call", call)); got != c.erpc {
				t.Errorf("erpc: %s, want %s", got, c.erpc)
			}
			if got := text(table.Run("erpc", "execute_cast", call[1:])); got != "normal" {
				t.Errorf("cast: %s, want normal", got)
			}
		})
	}
	for _, bad := range [][]etf.Term{
		{etf.Atom("ref"), int64(1), etf.Atom("f"), etf.List(nil)},
		{etf.Atom("ref"), etf.Atom("m"), etf.String("f"), etf.List(nil)},
		{etf.Atom("ref"), etf.Atom("m"), etf.Atom("f"), etf.Atom("no_list")},
	} {
		if got := text(table.Run("erpc", "execute_call", bad)); got[:len("{ref,error,badarg")] != "{ref,error,badarg" {
			t.Errorf("%s: %s", text(etf.List(bad)), got)
		}
	}
}

// caller keeps what it is answered.
type caller struct{ answers []string }

func (*caller) Caps() etf.Caps { return etf.AllCaps }
func (*caller) Buffer() []byte { return nil }
func (c *caller) Answer(pid, _, message []byte) {
	c.answers = append(c.answers, string(etf.FormatRaw(nil, pid, 100))+" "+string(etf.FormatRaw(nil, message, 1000)))
}

func encode(t *testing.T, term etf.Term) []byte {
	t.Helper()
	b, err := etf.Append(nil, term, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRex(t *testing.T) {
	rex := &Rex{Node: "n@h", Table: table}
	pid := etf.NewPid("c@h", 9, 0, 1)
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			for _, word := range []etf.Atom{"call", "block_call"} {
				request := etf.Tuple{word, c.module, c.function, c.args, etf.Atom("user")}
				if got := string(etf.FormatRaw(nil, rex.HandleCall(nil, encode(t, request), etf.AllCaps), 1000)); got != c.rex {
					t.Errorf("%s: %s, want %s", word, got, c.rex)
				}
			}
			var to caller
			request := etf.Tuple{etf.Atom("call"), c.module, c.function, c.args, etf.Atom("user")}
			rex.HandleInfo(encode(t, etf.Tuple{pid, request}), &to)
			if want := pid.String() + " {rex," + c.rex + "}"; len(to.answers) != 1 || to.answers[0] != want {
				t.Errorf("message: %q, want %q", to.answers, want)
			}
		})
	}
	var to caller
	rex.HandleInfo(encode(t, etf.Tuple{pid, etf.Atom("features_request")}), &to)
	if want := pid.String() + " {features_reply,n@h,[erpc]}"; len(to.answers) != 1 || to.answers[0] != want {
		t.Errorf("features: %q, want %q", to.answers, want)
	}
	for _, odd := range []etf.Term{
		etf.Atom("stop"), etf.Tuple{etf.Atom("call"), etf.Atom("m")}, etf.Tuple{pid, etf.Atom("x")},
		etf.Tuple{etf.Atom("x"), etf.Atom("features_request")},
	} {
		to.answers = nil
		rex.HandleInfo(encode(t, odd), &to)
		rex.HandleCast(encode(t, odd))
		if got := rex.HandleCall(nil, encode(t, odd), etf.AllCaps); got != nil || to.answers != nil {
			t.Errorf("%s is answered: %q %q", text(odd), got, to.answers)
		}
	}
}

// A result that the peer cannot read is an error to it, not silence.
func TestUnreadableResult(t *testing.T) {
	rex := &Rex{Table: Table{{"m", "map", 0}: func([]etf.Term) (etf.Term, error) { return etf.Map{}, nil }}}
	request := etf.Tuple{etf.Atom("call"), etf.Atom("m"), etf.Atom("map"), etf.List(nil), etf.Atom("user")}
	got := string(etf.FormatRaw(nil, rex.HandleCall(nil, encode(t, request), etf.Caps{}), 1000))
	if got[:len("{badrpc,")] != "{badrpc," {
		t.Error(got)
	}
}
