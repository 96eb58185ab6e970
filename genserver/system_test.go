package genserver

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// sys:terminate is answered before the server ends, and refused by a server without End.
func TestTerminate(t *testing.T) {
	ref := etf.NewRef("a@b", 1, 1, 2, 3)
	message, err := etf.Append(nil, etf.Tuple{
		etf.Atom("system"), etf.Tuple{etf.NewPid("a@b", 9, 0, 1), ref}, etf.Tuple{etf.Atom("terminate"), etf.Atom("why")},
	}, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	var c caller
	s := &Server{Handler: new(server), End: func(why etf.Term) { c.sent = append(c.sent, fmt.Sprint("ended: ", why)) }}
	for range 2 {
		c.sent = nil
		c.caps = etf.AllCaps
		if err := s.Receive(message, &c); err != nil {
			t.Fatal(err)
		}
		if s.End != nil {
			if len(c.sent) != 2 || !strings.HasSuffix(c.sent[0], "w\x02ok") || c.sent[1] != "ended: why" {
				t.Errorf("sent %q", c.sent)
			}
		} else if len(c.sent) != 1 || !strings.Contains(c.sent[0], "unknown_system_msg") {
			t.Errorf("sent %q", c.sent)
		}
		s.End = nil
	}
}

// answer returns a server's answer to a system message, as Erlang text.
func answer(t *testing.T, s *Server, tag etf.Term, request string) string {
	t.Helper()
	exprs, _, err := erltext.Parse(request + ".")
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	from := etf.Tuple{etf.NewPid("a@b", 9, 0, 1), tag}
	message, err := etf.Append(nil, etf.Tuple{etf.Atom("system"), from, exprs[0].(*erltext.Literal).Term}, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	c := caller{caps: etf.AllCaps}
	if err := s.Receive(message, &c); err != nil || len(c.sent) != 1 {
		t.Fatalf("%s: %q, %v", request, c.sent, err)
	}
	_, term, _ := strings.Cut(c.sent[0], "before ")
	answer, err := etf.Decode([]byte(term))
	if err != nil {
		t.Fatal(err)
	}
	return string(etf.Format(nil, answer.(etf.Tuple)[1]))
}

// A server answers module sys as OTP does when nothing is collected.
func TestSystem(t *testing.T) {
	s := &Server{Handler: new(server), End: func(etf.Term) { t.Error("the server ended") }}
	for request, want := range map[string]string{
		"get_state":                      "[]",
		"resume":                         "ok",
		"suspend":                        "{error,{unknown_system_msg,suspend}}",
		"{terminate}":                    "{error,{unknown_system_msg,{terminate}}}",
		"{change_code,x}":                "{error,{unknown_system_msg,{change_code,x}}}",
		"{debug}":                        "{error,{unknown_system_msg,{debug}}}",
		"{debug,no_debug}":               "ok",
		"{debug,debug}":                  "unknown_debug",
		"{debug,{statistics}}":           "unknown_debug",
		"{debug,{statistics,true}}":      "ok",
		"{debug,{statistics,false}}":     "ok",
		"{debug,{statistics,get}}":       "{ok,no_statistics}",
		"{debug,{statistics,x}}":         "unknown_debug",
		"{debug,{log,true}}":             "ok",
		"{debug,{log,false}}":            "ok",
		"{debug,{log,print}}":            "ok",
		"{debug,{log,get}}":              "{ok,[]}",
		"{debug,{log,{true,9}}}":         "ok",
		"{debug,{log,{false,9}}}":        "unknown_debug",
		"{debug,{log,x}}":                "unknown_debug",
		"{debug,{trace,true}}":           "ok",
		"{debug,{trace,get}}":            "unknown_debug",
		"{debug,{log_to_file,false}}":    "ok",
		`{debug,{log_to_file,"/tmp/x"}}`: "{error,open_file}",
		"{debug,{remove,x}}":             "ok",
		"{debug,{install,x}}":            "unknown_debug",
	} {
		if got := answer(t, s, int64(1), request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

type stateful struct{ server }

func (*stateful) State() etf.Term { return etf.Atom("idle") }

// A caller whose alias has five words is assumed to be OTP 26.1 or later, where sys:get_state
// expects {ok, State}.
func TestState(t *testing.T) {
	s := &Server{
		Name: "flake", Module: "flake_server", Pid: etf.NewPid("a@b", 7, 0, 1),
		Parent: etf.NewPid("a@b", 6, 0, 1), Family: "flake_sup", Handler: new(stateful),
	}
	for want, words := range map[string][]uint32{"idle": {1, 2, 3}, "{ok,idle}": {1, 2, 3, 4, 5}} {
		ref := etf.NewRef("a@b", 1, words...)
		if got := answer(t, s, etf.ImproperList{Elements: []etf.Term{etf.Atom("alias")}, Tail: ref},
			"get_state"); got != want {
			t.Errorf("alias of %d words: %s, want %s", len(words), got, want)
		}
		if got := answer(t, s, ref, "get_state"); got != "idle" {
			t.Errorf("reference of %d words: %s, want idle", len(words), got)
		}
	}
	want := `{status,<0.7.0>,{module,gen_server},[[{'$initial_call',{flake_server,init,1}},{'$ancestors',[flake_sup]}],` +
		`running,<0.6.0>,[],[{header,"Status for generic server flake"},{data,[{"Status",running},{"Parent",<0.6.0>},` +
		`{"Logged events",[]}]},{data,[{"State",idle}]}]]}`
	if got := answer(t, s, int64(1), "get_status"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The answer contains the request. A caller that cannot read it gets no answer.
func TestSystemUnreadable(t *testing.T) {
	var c caller
	message := "h\x03w\x06systemh\x02" + oldPid + "a\x01t\x00\x00\x00\x00"
	if err := (&Server{Handler: new(server)}).Receive([]byte(message), &c); err == nil || c.sent != nil {
		t.Errorf("sent %q, %v", c.sent, err)
	}
}

// A request that exceeds the limits of etf.Decode is answered too.
func TestSystemBeyondLimits(t *testing.T) {
	big := new(big.Int).Lsh(big.NewInt(1), 8*etf.MaxIntegerBytes)
	message, err := etf.Append(nil, etf.Tuple{
		etf.Atom("system"), etf.Tuple{etf.NewPid("a@b", 9, 0, 1), int64(1)}, etf.Tuple{etf.Atom("terminate"), big},
	}, etf.AllCaps)
	if err != nil {
		t.Fatal(err)
	}
	c := caller{caps: etf.AllCaps}
	s := &Server{Handler: new(server), End: func(etf.Term) { t.Error("the server ended") }}
	if err := s.Receive(message, &c); err != nil || len(c.sent) != 1 || !strings.Contains(c.sent[0], "system_limit") {
		t.Errorf("sent %q, %v", c.sent, err)
	}
}
