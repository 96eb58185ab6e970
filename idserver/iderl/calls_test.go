package iderl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/console/erltext"
	"github.com/flake-go/flake/node/etf"
)

// stock is a source with few ids per tick.
type stock struct {
	perTick int
	left    int // ticks; then it fails
	err     error

	tick, used int
	format     *formats.Format
}

func (s *stock) Format() *formats.Format {
	if s.format != nil {
		return s.format
	}
	return formats.KindOf("flake").Format(nil)
}

func (s *stock) Reserve(_ context.Context, n int, meta uint8) (formats.Run, error) {
	if s.used == s.perTick {
		s.tick, s.used = s.tick+1, 0
	}
	if s.tick == s.left {
		return formats.Run{}, s.err
	}
	first := formats.Number{Hi: uint64(s.tick), Lo: 7<<16 | uint64(s.used)}
	if s.Format().Meta {
		first.Lo |= uint64(meta) << 56
	}
	n = min(n, s.perTick-s.used)
	s.used += n
	return formats.Run{First: first, Count: n}, nil
}

func (s *stock) Last() (uint64, uint32)      { return uint64(s.tick), uint32(s.used) }
func (*stock) Ready() error                  { return nil }
func (*stock) Behind() time.Duration         { return 0 }
func (*stock) Worker() uint64                { return 7 }
func (*stock) Waits() uint64                 { return 5 }
func (s *stock) PerTick() int                { return s.perTick }
func (*stock) Mark() time.Time               { return time.UnixMilli(3000) }
func (*stock) LastSaved() (time.Time, error) { return time.Time{}, nil }

// unmarked is a stock without a mark.
type unmarked struct{ *stock }

func (unmarked) Mark() time.Time { return time.Time{} }

func handlerOf(ids formats.Source) *Handler {
	return &Handler{&idserver.Server{IDs: ids, Version: "1.2"}, slog.New(slog.DiscardHandler)}
}

// call makes a call, given as Erlang text, and returns the reply as text.
func call(t *testing.T, h *Handler, request string) string {
	t.Helper()
	return string(etf.FormatRaw(nil, reply(h, external(t, request, etf.AllCaps), etf.AllCaps), 1<<20))
}

func external(t *testing.T, text string, caps etf.Caps) []byte {
	t.Helper()
	exprs, _, err := erltext.Parse(text + ".")
	if err != nil || len(exprs) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := etf.Append(nil, exprs[0].(*erltext.Literal).Term, caps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each call gets the right reply. Ticks of three ids show where runs end.
func TestCalls(t *testing.T) {
	const (
		id  = "<<0,0,0,0,0,0,0,0,0,0,0,0,0,7,0,%d>>"
		top = "<<0,0,0,0,0,0,7,208,255,255,255,255,255,255,255,255>>"
		// From the example in README.md.
		octets = "<<0,0,1,161,251,23,88,123,122,0,120,255,227,212,0,0>>"
		fields = "{ok,[{time,1795213973627},{worker,134142448624596},{sequence,0}]}"
	)
	for request, want := range map[string]string{
		"get":                    "{ok," + fmt.Sprintf(id, 0) + "}",
		"{get,10}":               `{ok,"458752"}`,
		"{get,canonical}":        `{ok,"0000000000000000001vLE"}`,
		"{get_many,1}":           "{ok,[" + fmt.Sprintf(id, 0) + "]}",
		"{get_many,2}":           "{ok,[" + fmt.Sprintf(id+","+id, 0, 1) + "]}",
		"{get_many,4,16}":        `{ok,["70000","70001","70002","10000000000070000"]}`,
		"{get_many,1,canonical}": `{ok,["0000000000000000001vLE"]}`,
		"{get_binary,2}":         "{ok,<<0,0,0,0,0,0,0,0,0,0,0,0,0,7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,7,0,1>>}",
		"{lease,1}":              "{ok,[{" + fmt.Sprintf(id, 0) + ",1}]}",
		"{lease,3}":              "{ok,[{" + fmt.Sprintf(id, 0) + ",3}]}",
		"{lease,7}": "{ok,[{<<0,0,0,0,0,0,0,0,0,0,0,0,0,7,0,0>>,3}," +
			"{<<0,0,0,0,0,0,0,1,0,0,0,0,0,7,0,0>>,3},{<<0,0,0,0,0,0,0,2,0,0,0,0,0,7,0,0>>,1}]}",
		"{notional,2000}":                                    "{ok,<<0,0,0,0,0,0,7,208,0,0,0,0,0,0,0,0>>}",
		"{notional,1000,2000}":                               "{ok,{<<0,0,0,0,0,0,3,232,0,0,0,0,0,0,0,0>>," + top + "}}",
		"{notional,2000,2000}":                               "{ok,{<<0,0,0,0,0,0,7,208,0,0,0,0,0,0,0,0>>," + top + "}}",
		"{decompose," + octets + "}":                         fields,
		`{decompose,"0000BCeaFSZg0hpyLH1rPs"}`:               fields,
		`{decompose,<<"0000BCeaFSZg0hpyLH1rPs">>}`:           fields,
		`{decompose,"000001a1-fb17-587b-7a00-78ffe3d40000"}`: fields,
		`{decompose,"BCeaFSZg0hpyLH1rPs",62}`:                fields,
		`{decompose,<<"BCeaFSZg0hpyLH1rPs">>,62}`:            fields,
		`{decompose,"1a1fb17587b7a0078ffe3d40000",16}`:       fields,
		`{decompose,"0x1000000070002"}`:                      "{ok,[{time,0},{worker,4294967303},{sequence,2}]}",
		`{decompose,"` + strings.Repeat("0", 127) + `1",2}`:  "{ok,[{time,0},{worker,0},{sequence,1}]}",
		`{decompose,"\\x000001a1fb17587b7a0078ffe3d40000"}`:  fields,
		`{decompose,"\\x1a1fb17587b7a0078ffe3d40000"}`:       "{error,badarg}",
		`{decompose,"0000BCeaFSZg0hpyLH1rPs",canonical}`:     fields,
	} {
		if got := call(t, handlerOf(&stock{perTick: 3, left: 100}), request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	h := handlerOf(&stock{perTick: 100, left: 4})
	h.Server.Started = time.Now().Add(-time.Hour)
	for _, request := range []string{"get", "{get_many,9}", "{lease,100}", "{get,1}", "{lease,200}", "hello"} {
		call(t, h, request)
	}
	got := call(t, h, "info")
	want := regexp.MustCompile(`^\[\{format,flake\},\{worker,7\},\{ids,310\},\{waits,5\},\{refusals,1\},` +
		`\{last,3\},\{mark,3000\},\{uptime,360\d{4}\},\{version,"1.2"\}\]$`)
	if !want.MatchString(got) {
		t.Errorf("%s, want %s", got, want)
	}
	if !strings.Contains(call(t, handlerOf(unmarked{&stock{}}), "info"), "{last,0},{uptime,") {
		t.Error("info shows a mark, although the source has none")
	}
	h.Server.From = func() idserver.Origin { return idserver.Origin{From: "interface eth0"} }
	if got := call(t, h, "info"); !strings.HasSuffix(got, `,{version,"1.2"},{worker_from,"interface eth0"}]`) {
		t.Error(got)
	}
	until := time.Now().Add(90*time.Second + time.Hour) // so that the first digits of the time left are known
	h.Server.From = func() idserver.Origin {
		return idserver.Origin{From: "store", Until: until, Err: errors.New("no answer")}
	}
	want = regexp.MustCompile(fmt.Sprintf(`,{worker_from,"store"},{worker_until,%d},{worker_left,36\d{5}},`+
		`{worker_error,"no answer"}\]$`, until.UnixMilli()))
	if got := call(t, h, "info"); !want.MatchString(got) {
		t.Errorf("%s, want %s", got, want)
	}
}

// Other formats have ids of other sizes and their own text forms.
func TestFormats(t *testing.T) {
	for _, test := range []struct {
		format     *formats.Format
		call, want string
	}{
		{formats.SnowflakeFormat(snowflake.Twitter), "get", "{ok,<<0,0,0,0,0,7,0,0>>}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get_binary,2}", "{ok,<<0,0,0,0,0,7,0,0,0,0,0,0,0,7,0,1>>}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get_many,1,canonical}", `{ok,["458752"]}`},
		{formats.SnowflakeFormat(snowflake.Twitter), "{decompose,<<0,0,0,0,0,7,0,0>>}",
			"{ok,[{time,1288834974657},{machine,112},{sequence,0}]}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{notional,0}", "{error,badarg}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get,base58}", `{ok,"3mnw"}`},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get_many,2,base64}", `{ok,["NDU4NzUy","NDU4NzUz"]}`},
		{formats.SnowflakeFormat(snowflake.Twitter), `{decompose,"NDU4NzUy",base64}`,
			"{ok,[{time,1288834974657},{machine,112},{sequence,0}]}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get,base62}", "{error,badarg}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get,uuid}", "{error,badarg}"},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get,crockford}", `{ok,"000000000E000"}`},
		{formats.SnowflakeFormat(snowflake.Twitter), "{get,32}", `{ok,"E000"}`}, // as in the original
		{formats.KindOf("sno").Format(nil), "{get,crockford}", `{ok,"000000000000E000"}`},
		{formats.KindOf("flake").Format(nil), "{get_many,2,uuid}",
			`{ok,["00000000-0000-0000-0000-000000070000","00000000-0000-0000-0000-000000070001"]}`},
		{formats.KindOf("flake").Format(nil), "{get,crockford}", `{ok,"0000000000000000000000E000"}`},
		{formats.KindOf("flake").Format(nil), `{decompose,"00000t3yrqb1xqm03rzzhx8000"}`,
			"{ok,[{time,1795213973627},{worker,134142448624596},{sequence,0}]}"},
		{formats.KindOf("sno").Format(nil), "{get,base58}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{lease,2}", "{ok,[{<<0,0,0,0,0,0,0,7,0,0>>,2}]}"},
		{formats.KindOf("sno").Format(nil), "{lease,meta,255,3}", "{ok,[{<<0,0,255,0,0,0,0,7,0,0>>,3}]}"},
		{formats.KindOf("sno").Format(nil), "{lease,meta,256,3}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{lease,meta,255,0}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{get,meta,255}", "{ok,<<0,0,255,0,0,0,0,7,0,0>>}"},
		{formats.KindOf("sno").Format(nil), "{get,meta,256}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{get,meta,-1}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{get,meta,1.0}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{get,meta,x}", "{error,badarg}"},
		{formats.KindOf("sno").Format(nil), "{get,canonical}", `{ok,"222222222222g222"}`},
		{formats.KindOf("uuidv7").Format(nil), "{decompose,<<1,35,69,103,137,171,112,7,128,0,0,0,0,1,64,3>>}",
			"{ok,[{time,1250999896491},{version,7},{sequence,7},{variant,2},{worker,5},{random,3}]}"},
		{formats.KindOf("uuidv7").Format(nil), `{decompose,"01234567-89ab-7007-8000-000000014003"}`,
			"{ok,[{time,1250999896491},{version,7},{sequence,7},{variant,2},{worker,5},{random,3}]}"},
		{formats.KindOf("uuidv7").Format(nil), `{decompose,"01234567-89ab-4007-8000-000000014003"}`, "{error,badarg}"},
		{formats.KindOf("uuidv7").Format(nil), "{notional,1250999896491}",
			"{ok,<<1,35,69,103,137,171,112,0,128,0,0,0,0,0,0,0>>}"},
		{formats.KindOf("uuidv7").Format(nil), "{notional,281474976710656}", "{error,badarg}"},
		{formats.KindOf("ulid").Format(nil), `{decompose,"7ZZZZZZZZZZZZZZZZZZZZZZZZZ"}`,
			"{ok,[{time,281474976710655},{sequence,65535},{worker,281474976710655},{random,65535}]}"},
		{formats.KindOf("ulid").Format(nil), `{decompose,<<"80000000000000000000000000">>}`, "{error,badarg}"},
		{formats.KindOf("ulid").Format(nil), "{get,canonical}", `{ok,"0000000000000000000000E000"}`},
	} {
		if got := call(t, handlerOf(&stock{perTick: 3, left: 1, format: test.format}), test.call); got != test.want {
			t.Errorf("%s of %s: %s, want %s", test.call, test.format.Name, got, test.want)
		}
	}
}

// sys:get_state shows the original's record.
func TestState(t *testing.T) {
	h := handlerOf(&stock{perTick: 3, left: 9})
	call(t, h, "{lease,5}")
	if got, want := string(etf.Format(nil, h.State())), "{state,1,7,2}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Calls are counted by kind and result.
func TestStats(t *testing.T) {
	h := handlerOf(&stock{perTick: 100, left: 1, err: flake.ErrClockBackwards})
	for range 40 {
		call(t, h, "get")
	}
	for _, request := range []string{
		"{lease,50}", "{get_binary,11}", "{notional,1}", "{get,meta,1}", "info", "hello",
		"{get,1}", "{get_many,0}", "{get_many,65537}", "{lease,0}", "{lease,1048577}", "{notional,2,1}",
	} {
		call(t, h, request)
	}
	apply(t, h.Server, "flake_server:id[1]", nil, nil)
	want := "{90 5 9 [{unknown ok 1} {get ok 40} {get badarg 1} {invalid badarg 6} " +
		"{get_binary clock_running_backwards 1} {lease ok 1} {notional ok 1} {span badarg 1} {info ok 1}]}"
	if got := fmt.Sprint(h.Server.Stats()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A call with any argument that is out of range or of the wrong type is answered with badarg, and
// takes no id.
func TestBadArguments(t *testing.T) {
	const (
		noNumber = "0 -1 1.0 1.5 atom <<1>> \"1\" [] [1] {1} #{} <<>> 18446744073709551616 -18446744073709551616"
		noBase   = noNumber + " 1 63 binary base58 base64 4294967298 18446744073709551618"
		noTime   = "-1 1.0 atom <<1>> \"1\" [] [1] {1} #{} 18446744073709551616 -18446744073709551616"
		noID     = "0 1 1.0 atom [] [300] {1} #{} <<>> <<0:120>> <<0:136>> <<0:7>> <<0:1032>> \"\" \"1\" " +
			"\"000001a1-fb17-587b-7a00-78ffe3d4000\" \"000001a1+fb17-587b-7a00-78ffe3d40000\" " +
			"\"zzzzzzzzzzzzzzzzzzzzzz\" \"00000000000000000000-0\""
		noText = noID + " <<0:128>> \"_\" \"-1\" \"+1\""
	)
	for _, test := range []struct{ call, bad string }{
		{"{get,?}", noBase},
		{"{get,meta,?}", noTime + " 256 0"}, // this format has no metabyte
		{"{lease,meta,?,1}", noTime + " 256 0"},
		{"{get_many,?}", noNumber + " 65537"},
		{"{get_many,?,62}", noNumber + " 65537"},
		{"{get_many,1,?}", noBase},
		{"{get_binary,?}", noNumber + " 65537"},
		{"{lease,?}", noNumber + " 1048577"},
		{"{notional,?}", noTime},
		{"{notional,?,18446744073709551615}", noTime},
		{"{notional,0,?}", noTime},
		{"{notional,2,?}", "1"},
		{"{decompose,?}", noID},
		{"{decompose,?,36}", strings.ReplaceAll(noText, `"1" `, "") + ` "_" "` + strings.Repeat("Z", 25) + `"`},
		{"{decompose,?,canonical}", noID + " <<0:128>>"},
		{`{decompose,"1",?}`, noBase},
		{"{decompose,?,2}", `"` + strings.Repeat("0", formats.MaxText) + `1"`},
	} {
		for bad := range strings.SplitSeq(test.bad, " ") {
			request := strings.Replace(test.call, "?", bad, 1)
			for _, caps := range []etf.Caps{etf.AllCaps, {MapTag: true, BitBinaries: true, NewFloats: true}} {
				ids := &stock{perTick: 100, left: 100}
				h := handlerOf(ids)
				term := external(t, request, caps)
				got := string(etf.FormatRaw(nil, reply(h, term, caps), 1000))
				if want := "{error,badarg}"; got != want {
					t.Errorf("%s: %s, want %s", request, got, want)
				}
				if n := h.Server.Stats().IDs; n != 0 || ids.used != 0 {
					t.Errorf("%s: took %d ids", request, n)
				}
			}
		}
	}
}

// Malformed calls are answered like unknown calls.
func TestNoCalls(t *testing.T) {
	for _, request := range []string{
		"get_many", "lease", "{get_many}", "{get_many,1,2,3}", "{get_binary,1,2}", "{lease,1,62}", "{notional}",
		"{notional,1,2,3}", "{decompose}", "{decompose,<<0:128>>,1,2}", "{info}", "{info,1}", "{get,meta,1,2}",
		"{get,62,1}", "{get,<<\"meta\">>,1}", "{lease,mate,1,1}", "{lease,meta,1}", "[lease,1]", "#{lease=>1}",
	} {
		if got := call(t, handlerOf(&stock{perTick: 100, left: 100}), request); got != "ok" {
			t.Errorf("%s: %s, want ok", request, got)
		}
	}
}

// A request that fails midway is answered with only an error.
func TestNoPartialAnswer(t *testing.T) {
	for _, request := range []string{"{get_many,7}", "{get_many,7,62}", "{get_binary,7}", "{lease,7}"} {
		h := handlerOf(&stock{perTick: 3, left: 2, err: flake.ErrTimestampNotSaved})
		if got, want := call(t, h, request), "{error,timestamp_not_saved}"; got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}
