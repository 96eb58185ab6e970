package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"

	"github.com/flake-go/flake/genserver"
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

// calls holds function calls, and their results through erpc, through rex and as spawned processes.
var calls = map[string]struct {
	module, function etf.Atom
	args             etf.Term
	erpc, rex, spawn string
}{
	"a result":    {"m", "add", etf.List{int64(1), int64(2)}, "{ref,return,3}", "3", "normal"},
	"of a string": {"m", "add", etf.String("ab"), "{ref,return,195}", "195", "normal"},
	"a bad argument": {"m", "add", etf.List{int64(1), etf.Atom("x")}, "{ref,error,badarg,[{m,add,[1,x],[]}]}",
		"{badrpc,{'EXIT',{badarg,[{m,add,[1,x],[]}]}}}", "{badarg,[{m,add,[1,x],[]}]}"},
	"not there": {"os", "cmd", etf.List{etf.String("ls")}, `{ref,error,undef,[{os,cmd,["ls"],[]}]}`,
		`{badrpc,{'EXIT',{undef,[{os,cmd,["ls"],[]}]}}}`, `{undef,[{os,cmd,["ls"],[]}]}`},
	"wrong arity": {"m", "add", etf.List{int64(1)}, "{ref,error,undef,[{m,add,[1],[]}]}",
		"{badrpc,{'EXIT',{undef,[{m,add,[1],[]}]}}}", "{undef,[{m,add,[1],[]}]}"},
	"an exit": {"m", "exit", etf.List{etf.Atom("why")}, "{ref,exit,why}", "{badrpc,{'EXIT',why}}", "why"},
	"a throw": {"m", "throw", etf.List{etf.Atom("it")}, "{ref,throw,it}", "it", "{{nocatch,it},[]}"},
	"another error": {"m", "fail", etf.List(nil), `{ref,error,"broken",[{m,fail,[],[]}]}`,
		`{badrpc,{'EXIT',{"broken",[{m,fail,[],[]}]}}}`, `{"broken",[{m,fail,[],[]}]}`},
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

// caller records the answers sent to it. If it is full, no function runs for it. If it is old, it
// cannot read maps.
type caller struct {
	answers   []string
	full, old bool
}

func (c *caller) Caps() etf.Caps {
	if c.old {
		return etf.Caps{}
	}
	return etf.AllCaps
}

func (*caller) Buffer() []byte                   { return nil }
func (*caller) Count(int)                        {}
func (*caller) Context() context.Context         { return context.Background() }
func (c *caller) Grow(int) bool                  { return !c.full }
func (c *caller) Later(f func(genserver.Caller)) { f(c) }
func (c *caller) Send(pid, _, message []byte) {
	c.answers = append(c.answers, string(etf.FormatRaw(nil, pid, 100))+" "+string(etf.FormatRaw(nil, message, 1000)))
}

func external(t *testing.T, term etf.Term) []byte {
	t.Helper()
	b, err := etf.Append(nil, term, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRex(t *testing.T) {
	rex := &Rex{Node: "n@h", Table: table}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			for _, word := range []etf.Atom{"call", "block_call"} {
				request := etf.Tuple{word, c.module, c.function, c.args, etf.Atom("user")}
				if got, want := call(t, rex, request, &caller{}), "{tag,"+c.rex+"}"; got != want {
					t.Errorf("%s: %s, want %s", word, got, want)
				}
				if got, want := call(t, rex, request, &caller{full: true}), "{tag,{badrpc,{'EXIT',system_limit}}}"; got != want {
					t.Errorf("%s: %s, want %s", word, got, want)
				}
			}
			var to caller
			request := etf.Tuple{etf.Atom("call"), c.module, c.function, c.args, etf.Atom("user")}
			rex.HandleInfo(external(t, etf.Tuple{pid, request}), &to)
			if want := pid.String() + " {rex," + c.rex + "}"; len(to.answers) != 1 || to.answers[0] != want {
				t.Errorf("message: %q, want %q", to.answers, want)
			}
		})
	}
	var to caller
	rex.HandleInfo(external(t, etf.Tuple{pid, etf.Atom("features_request")}), &to)
	if want := pid.String() + " {features_reply,n@h,[erpc]}"; len(to.answers) != 1 || to.answers[0] != want {
		t.Errorf("features: %q, want %q", to.answers, want)
	}
	for _, odd := range []etf.Term{
		etf.Atom("halt"), etf.Tuple{etf.Atom("call"), etf.Atom("m")}, etf.Tuple{pid, etf.Atom("x")},
		etf.Tuple{etf.Atom("x"), etf.Atom("features_request")},
	} {
		to.answers = nil
		rex.HandleInfo(external(t, odd), &to)
		rex.HandleCast(external(t, odd), &to)
		if got := call(t, rex, odd, &to); got != "" || to.answers != nil {
			t.Errorf("%s is answered: %q", text(odd), to.answers)
		}
	}
}

// A message from rpc:sbcast is sent to the process with the given name, and the answer says whether
// that process exists. A message to rex itself is dropped.
func TestSbcast(t *testing.T) {
	var sent []string
	rex := &Rex{Node: "n@h", Send: func(name etf.Atom, message []byte, _ genserver.Caller) bool {
		sent = append(sent, string(name)+" "+string(etf.FormatRaw(nil, message, 100)))
		return name == "flake"
	}}
	sbcast := func(to, message etf.Term) etf.Term {
		return etf.Tuple{pid, etf.Tuple{etf.Atom("sbcast"), to, message}}
	}
	for _, test := range []struct {
		to         etf.Term
		sent, want string
	}{
		{etf.Atom("flake"), "[flake {a,1}]", "{rex,n@h,n@h}"},
		{etf.Atom("nobody"), "[nobody {a,1}]", "{rex,n@h,{nonexisting_name,nobody}}"},
		{etf.Atom("rex"), "[]", "{rex,n@h,n@h}"},
		{int64(1), "[]", "{rex,n@h,{nonexisting_name,1}}"},
	} {
		var to caller
		sent = nil
		message := external(t, sbcast(test.to, etf.Tuple{etf.Atom("a"), int64(1)}))
		if err := (&genserver.Server{Handler: rex}).Receive(message, &to); err != nil {
			t.Fatal(err)
		}
		if want := pid.String() + " " + test.want; len(to.answers) != 1 || to.answers[0] != want ||
			fmt.Sprint(sent) != test.sent {
			t.Errorf("%v: sent %q, answered %q, want %s and %s", test.to, sent, to.answers, test.sent, want)
		}
	}
}

// No function runs on the goroutine that reads the connection, however small the request.
func TestReaderRunsNoFunction(t *testing.T) {
	rex := &Rex{Node: "n@h", Table: Table{{"m", "run", 1}: func([]etf.Term) (etf.Term, error) {
		t.Error("the reader ran the function")
		return nil, nil
	}}}
	for _, size := range []int{1, 1000} {
		request := func(word etf.Atom) etf.Term {
			return etf.Tuple{word, etf.Atom("m"), etf.Atom("run"), etf.List{make([]byte, size)}, etf.Atom("user")}
		}
		to := caller{full: true}
		rex.HandleCast(external(t, request("cast")), &to)
		if to.answers != nil {
			t.Errorf("a cast is answered: %q", to.answers)
		}
		if got, want := call(t, rex, request("call"), &to), "{tag,{badrpc,{'EXIT',system_limit}}}"; got != want {
			t.Errorf("call of %d bytes: %s, want %s", size, got, want)
		}
	}
}

// A request beyond the limits of etf.Decode is answered.
func TestBeyondLimits(t *testing.T) {
	rex := &Rex{Node: "n@h", Table: table}
	big := new(big.Int).Lsh(big.NewInt(1), 8*etf.MaxIntegerBytes)
	for _, word := range []etf.Atom{"call", "block_call"} {
		request := etf.Tuple{word, etf.Atom("m"), etf.Atom("add"), etf.List{big, big}, etf.Atom("user")}
		if got, want := call(t, rex, request, &caller{}), "{tag,{badrpc,{'EXIT',system_limit}}}"; got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
	if got := call(t, rex, etf.Tuple{etf.Atom("x"), etf.Atom("m"), etf.Atom("add"), etf.List{big}, etf.Atom("user")},
		&caller{}); got != "" {
		t.Errorf("a request that is not a call is answered with %s", got)
	}
}

// A request of MaxRequest bytes is performed; a longer one is not.
func TestMaxRequest(t *testing.T) {
	rex := &Rex{Node: "n@h", Table: Table{{"m", "size", 1}: func(args []etf.Term) (etf.Term, error) {
		return int64(len(args[0].([]byte))), nil
	}}}
	request := func(octets int) etf.Term {
		return etf.Tuple{etf.Atom("call"), etf.Atom("m"), etf.Atom("size"), etf.List{make([]byte, octets)}, etf.Atom("user")}
	}
	largest := MaxRequest - len(external(t, request(0)))
	for _, test := range []struct {
		octets int
		want   string
	}{
		{largest, fmt.Sprint(largest)},
		{largest + 1, "{badrpc,{'EXIT',system_limit}}"},
	} {
		if got, want := call(t, rex, request(test.octets), &caller{}), "{tag,"+test.want+"}"; got != want {
			t.Errorf("call: %s, want %s", got, want)
		}
		var to caller
		rex.HandleInfo(external(t, etf.Tuple{pid, request(test.octets)}), &to)
		if want := pid.String() + " {rex," + test.want + "}"; len(to.answers) != 1 || to.answers[0] != want {
			t.Errorf("message: %q, want %q", to.answers, want)
		}
	}
}

var pid = etf.NewPid("c@h", 9, 0, 1)

// call sends rex a call and returns the answer, or "".
func call(t *testing.T, rex *Rex, request etf.Term, c *caller) string {
	t.Helper()
	message := etf.Tuple{etf.Atom("$gen_call"), etf.Tuple{pid, etf.Atom("tag")}, request}
	if err := (&genserver.Server{Handler: rex}).Receive(external(t, message), c); err != nil {
		t.Fatal(err)
	}
	if len(c.answers) == 0 {
		return ""
	}
	return strings.TrimPrefix(c.answers[0], pid.String()+" ")
}

// A result that the peer cannot read is answered with an error.
func TestUnreadableResult(t *testing.T) {
	rex := &Rex{Table: Table{{"m", "map", 0}: func([]etf.Term) (etf.Term, error) { return etf.Map{}, nil }}}
	request := etf.Tuple{etf.Atom("call"), etf.Atom("m"), etf.Atom("map"), etf.List(nil), etf.Atom("user")}
	if got := call(t, rex, request, &caller{old: true}); !strings.HasPrefix(got, "{tag,{badrpc,") {
		t.Error(got)
	}
}

// The functions about modules know those of the table.
func TestAddModuleInfo(t *testing.T) {
	own := maps.Clone(table)
	own.AddModuleInfo()
	m, shell, add := etf.Atom("m"), etf.Atom("shell"), etf.Atom("add")
	for _, test := range []struct {
		module, function etf.Atom
		args             []etf.Term
		want             string
	}{
		{"m", "module_info", []etf.Term{etf.Atom("module")}, "m"},
		{"m", "module_info", []etf.Term{add}, "badarg"},
		{"code", "ensure_loaded", []etf.Term{m}, "{module,m}"},
		{"code", "ensure_loaded", []etf.Term{etf.Atom("code")}, "{module,code}"},
		{"code", "ensure_loaded", []etf.Term{shell}, "{error,nofile}"},
		{"code", "ensure_loaded", []etf.Term{etf.String("m")}, "badarg"},
		{"erlang", "function_exported", []etf.Term{m, add, int64(2)}, "true"},
		{"erlang", "function_exported", []etf.Term{m, add, int64(3)}, "false"},
		{"erlang", "function_exported", []etf.Term{shell, etf.Atom("start"), int64(0)}, "false"},
		{"erlang", "function_exported", []etf.Term{m, add, int64(-1)}, "badarg"},
	} {
		result, e := own.Apply(test.module, test.function, test.args)
		if e != nil {
			result = e.Reason
		}
		if got := text(result); got != test.want {
			t.Errorf("%s:%s%s: %s, want %s", test.module, test.function, text(etf.List(test.args)), got, test.want)
		}
	}
}
