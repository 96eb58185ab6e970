package iderl

import (
	"bytes"
	"io"
	"math/big"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// apply calls a function, given as Erlang text with a list of arguments, and returns the result or
// the reason for its failure.
func apply(t *testing.T, s *idserver.Server, call string, config map[etf.Atom]etf.Term, output io.Writer) string {
	t.Helper()
	name, list, _ := strings.Cut(call, "[")
	exprs, _, err := erltext.Parse("[" + list + ".")
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	args, _ := etf.Elements(exprs[0].(*erltext.Literal).Term)
	module, function, _ := strings.Cut(name, ":")
	result, e := Functions(s, config, output).Apply(etf.Atom(module), etf.Atom(function), args)
	if e != nil {
		return "error: " + string(etf.Format(nil, e.Reason))
	}
	term, err := etf.Append(nil, result, etf.AllCaps)
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return string(etf.FormatRaw(nil, term, 1<<22))
}

// Each of the original's functions returns the right result.
func TestFunctions(t *testing.T) {
	const (
		id     = "<<0,0,0,0,0,0,0,0,0,0,0,0,0,7,0,%>>"
		badarg = "error: badarg"
		limit  = "error: system_limit"
	)
	config := map[etf.Atom]etf.Term{"interface": etf.String("eth0")}
	huge := new(big.Int).Lsh(big.NewInt(1), maxDigits)
	most := new(big.Int).Sub(huge, big.NewInt(1))
	for call, want := range map[string]string{
		"flake:get_config_value[interface,def]":   `"eth0"`,
		"flake:get_config_value[other,def]":       "def",
		`flake:get_config_value["interface",def]`: "def",
		"application:get_env[flake,interface]":    `{ok,"eth0"}`,
		"application:get_env[flake,other]":        "undefined",
		"application:get_env[kernel,interface]":   "undefined",
		`application:get_env[flake,"interface"]`:  "undefined",
		"application:which_applications[]":        `[{flake,"flake","1.2"}]`,
		"application:which_applications[9]":       `[{flake,"flake","1.2"}]`,
		"flake:start[]":                           "{error,{already_started,flake}}",
		"flake:stop[]":                            "{error,not_supported}",
		"flake_sup:upgrade[]":                     "ok",
		"persistent_timer:get_last_timestamp[]":   "{ok,-62135596800000}",
		"flake_server:id[]":                       "{ok," + strings.ReplaceAll(id, "%", "0") + "}",
		"flake_server:id[10]":                     `{ok,"458752"}`,
		"flake_server:id[1]":                      "{error,badarg}",
		"flake_server:id[63]":                     "{error,badarg}",
		"flake_server:id[base58]":                 "{error,badarg}",
		"flake_server:id[2]":                      `{ok,"1110000000000000000"}`,
		"flake_server:id[62]":                     `{ok,"1vLE"}`,
		"flake_server:id[62.0]":                   "{error,badarg}",
		"flake_server:id[canonical]":              `{ok,"0000000000000000001vLE"}`,
		"flake_harness:generate[0]":               "[]",
		"flake_harness:generate[3,10]":            `["458754","458753","458752"]`,
		"flake_harness:generate[2]": "[" + strings.ReplaceAll(id, "%", "1") + "," +
			strings.ReplaceAll(id, "%", "0") + "]",
		"flake_harness:generate[1,2]":                   `["1110000000000000000"]`,
		"flake_harness:generate[1,62]":                  `["1vLE"]`,
		"flake_harness:generate[-1]":                    badarg,
		"flake_harness:generate[x]":                     badarg,
		"flake_harness:generate[1,1]":                   badarg,
		"flake_harness:generate[1,63]":                  badarg,
		"flake_harness:generate[1,x]":                   badarg,
		"flake_harness:generate[100001]":                limit,
		"flake_harness:generate[100001,62]":             limit,
		"flake_harness:generate[20481,2]":               limit,
		"flake_harness:generate[576460752303423489,32]": limit, // 2^59+1
		"flake_util:as_list[0,2]":                       `"0"`,
		"flake_util:as_list[5,2]":                       `"101"`,
		"flake_util:as_list[-61,62]":                    `"-z"`,
		"flake_util:as_list[61,63]":                     badarg,
		"flake_util:as_list[61,1]":                      badarg,
		"flake_util:as_list[61,x]":                      badarg,
		"flake_util:as_list[x,2]":                       badarg,
		"flake_util:as_list[1010,36]":                   `"S2"`,
		"flake_util:as_list[3783,62]":                   `"z1"`,
		"flake_util:as_list[" + huge.String() + ",16]":  limit,
		"flake_util:as_list[" + most.String() + ",16]":  `"` + strings.Repeat("F", maxDigits/4) + `"`,
		"flake_util:gen_id[1,2,3]":                      "<<0,0,0,0,0,0,0,1,0,0,0,0,0,2,0,3>>",
		"flake_util:gen_id[-1,281474976710658,65537]":   "<<255,255,255,255,255,255,255,255,0,0,0,0,0,2,0,1>>",
		"flake_util:gen_id[1,x,3]":                      badarg,
		"flake_util:hw_addr_to_int[[2,252,0,0,255,1]]":  "3281355079425",
		"flake_util:hw_addr_to_int[[2,252,0,0,1]]":      badarg,
		"flake_util:hw_addr_to_int[[2,252,0,0,256,1]]":  badarg,
		"flake_util:hw_addr_to_int[[2,252,0,0,-1,1]]":   badarg,
		"flake_util:hw_addr_to_int[[2,252,0,0,x,1]]":    badarg,
		"flake_util:hw_addr_to_int[x]":                  badarg,
		`flake_util:get_if_hw_int["nosuch"]`:            "{error,if_not_found}",
		"flake_util:get_if_hw_int[eth0]":                "{error,if_not_found}",
	} {
		s := handlerOf(&stock{perTick: 1 << 16, left: 100}).Server
		if got := apply(t, s, call, config, nil); got != want {
			t.Errorf("%.60s: %.200s, want %.200s", call, got, want)
		}
	}
}

// A list with the largest number of ids is complete, newest first.
func TestGenerateMany(t *testing.T) {
	for _, test := range []struct {
		args  []etf.Term
		count int
	}{
		{[]etf.Term{int64(0)}, 0},
		{[]etf.Term{int64(100_000)}, 100_000},
		{[]etf.Term{int64(20_480), int64(2)}, 20_480},
	} {
		s := handlerOf(&stock{perTick: 3000, left: 100}).Server
		result, e := Functions(s, nil, nil).Apply("flake_harness", "generate", test.args)
		if e != nil {
			t.Fatal(e)
		}
		list, err := etf.Decode(result.(etf.Encoded))
		if err != nil {
			t.Fatal(err)
		}
		again, err := etf.Append(nil, list, etf.AllCaps)
		if err != nil || !bytes.Equal(again, result.(etf.Encoded)) {
			t.Errorf("%v: not encoded as OTP does: %.20q, %v", test.args, result, err)
		}
		ids, _ := etf.Elements(list)
		if len(ids) != test.count || s.Stats().IDs != uint64(test.count) {
			t.Errorf("%d ids, counted %d, want %d", len(ids), s.Stats().IDs, test.count)
		}
		for i := 1; i < len(ids) && len(test.args) == 1; i++ {
			if bytes.Compare(ids[i-1].([]byte), ids[i].([]byte)) <= 0 {
				t.Fatalf("%v before %v", ids[i-1], ids[i])
			}
		}
	}
}

// timed_generate prints how long it took, unless it fails.
func TestTimedGenerate(t *testing.T) {
	var out strings.Builder
	s := handlerOf(&stock{perTick: 100, left: 1, err: flake.ErrClockBackwards}).Server
	if got, want := apply(t, s, "flake_harness:timed_generate[1,10]", nil, &out), `["458752"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !regexp.MustCompile(`^generating ids: \d+\.\d{3} s\n$`).MatchString(out.String()) {
		t.Errorf("printed %q", out.String())
	}
	out.Reset()
	got := apply(t, s, "flake_harness:timed_generate[100]", nil, &out)
	if want := "error: {badmatch,{error,clock_running_backwards}}"; got != want || out.Len() > 0 {
		t.Errorf("%s, want %s; printed %q", got, want, out.String())
	}
}

// Without an address, get_if_hw_int returns 0 for a loopback interface, and raises badarg for
// others.
func TestInterfaceAddress(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 1, 1}
	for _, test := range []struct {
		i    net.Interface
		want string
	}{
		{net.Interface{Flags: net.FlagUp | net.FlagLoopback}, "{ok,0}"},
		{net.Interface{Flags: net.FlagLoopback, HardwareAddr: mac}, "{ok,2199023255809}"},
		{net.Interface{Flags: net.FlagUp, HardwareAddr: mac}, "{ok,2199023255809}"},
		{net.Interface{Flags: net.FlagUp}, "badarg"},
	} {
		got, err := hwInt(&test.i)
		if text := string(etf.Format(nil, got)); err == nil && text != test.want || (err != nil) != (test.want == "badarg") {
			t.Errorf("%+v: %s, %v, want %s", test.i, text, err, test.want)
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		want := "error: badarg"
		if n, err := hwInt(&i); err == nil {
			want = string(etf.Format(nil, n))
		}
		if got := apply(t, new(idserver.Server), `flake_util:get_if_hw_int["`+i.Name+`"]`, nil, nil); got != want {
			t.Errorf("%s: %s, want %s", i.Name, got, want)
		}
	}
	want := "undefined"
	if _, name, err := flake.InterfaceWorker(""); err == nil {
		want = `"` + name + `"`
	}
	if got := apply(t, new(idserver.Server), "flake_util:get_default_if[]", nil, nil); got != want {
		t.Errorf("default: %s, want %s", got, want)
	}
}

// Ids that a function takes are counted like those of a call.
func TestFunctionsAreCounted(t *testing.T) {
	s := handlerOf(&stock{perTick: 100, left: 1, err: flake.ErrClockBackwards}).Server
	functions := Functions(s, nil, t.Output())
	for _, call := range []struct {
		module, function etf.Atom
		args             []etf.Term
	}{
		{"flake_server", "id", nil},
		{"flake_server", "id", []etf.Term{int64(62)}},
		{"flake_harness", "generate", []etf.Term{int64(30)}},
		{"flake_harness", "generate", []etf.Term{int64(20), int64(62)}},
		{"flake_harness", "timed_generate", []etf.Term{int64(10)}},
	} {
		if _, e := functions.Apply(call.module, call.function, call.args); e != nil {
			t.Errorf("%s: %v", call.function, e)
		}
	}
	if got := s.Stats(); got.IDs != 62 || got.Refusals != 0 {
		t.Errorf("%d ids, %d refusals, want 62 and none", got.IDs, got.Refusals)
	}
	if _, e := functions.Apply("flake_harness", "generate", []etf.Term{int64(100)}); e == nil {
		t.Error("a source that has run out returns ids")
	}
	if got := s.Stats(); got.IDs != 62 || got.Refusals != 1 {
		t.Errorf("then %d ids, %d refusals, want 62 and 1", got.IDs, got.Refusals)
	}
	s.IDs = &stock{perTick: 1, err: flake.ErrClockBackwards}
	if got, want := apply(t, s, "flake_server:id[]", nil, nil), "{error,clock_running_backwards}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	deep := etf.Term(etf.Atom("x"))
	for range etf.MaxDepth {
		deep = etf.Tuple{deep}
	}
	got, e := Functions(s, nil, nil).Apply("flake_server", "id", []etf.Term{deep})
	if want := failed(idserver.ErrBadArgument); e != nil || !slices.Equal(got.(etf.Tuple), want) {
		t.Errorf("%v, %v, want %v", got, e, want)
	}
	if got := s.Stats(); got.Refusals != 3 {
		t.Errorf("finally %d refusals, want 3", got.Refusals)
	}
}
