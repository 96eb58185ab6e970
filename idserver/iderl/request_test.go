package iderl

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/genserver"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/node/etf"
)

// Requests are decoded in all forms that callers use.
func TestDecodeRequest(t *testing.T) {
	octets := request{kind: idserver.KindGet}
	text := func(base int) request { return request{kind: idserver.KindGet, base: base} }
	invalid, unknown := request{kind: idserver.KindInvalid}, request{}
	for _, test := range []struct {
		name, term string
		want       request
	}{
		{"get", "w\x03get", octets},
		{"get, ATOM_UTF8_EXT", "v\x00\x03get", octets},
		{"get, SMALL_ATOM_EXT", "s\x03get", octets},
		{"get, ATOM_EXT", "d\x00\x03get", octets},
		{"{get, 2}", "h\x02w\x03geta\x02", text(2)},
		{"{get, 10}", "h\x02w\x03geta\x0a", text(10)},
		{"{get, 62}", "h\x02w\x03geta\x3e", text(62)},
		{"{get, base32}", "h\x02w\x03getw\x06base32", text(-4)},
		{"{get, base64}", "h\x02w\x03getw\x06base64", text(-7)},
		{"{get, uuid}", "h\x02w\x03getw\x04uuid", text(-2)},
		{"{get, crockford}", "h\x02w\x03getw\x09crockford", text(-3)},
		{"{get, base62}", "h\x02w\x03getw\x06base62", invalid},
		{"{get, 62}, ATOM_EXT", "h\x02d\x00\x03geta\x3e", text(62)},
		{"{get, 62}, INTEGER_EXT", "h\x02w\x03getb\x00\x00\x00\x3e", text(62)},
		{"{get, 62}, SMALL_BIG_EXT", "h\x02w\x03getn\x01\x00\x3e", text(62)},
		{"{get, 62}, LARGE_BIG_EXT", "h\x02w\x03geto\x00\x00\x00\x02\x00\x3e\x00", text(62)},
		{"{get, -2}", "h\x02w\x03getb\xff\xff\xff\xfe", invalid},
		{"{get, 2^32 + 62}", "h\x02w\x03getn\x05\x00\x3e\x00\x00\x00\x01", invalid},
		{"{get, 2^64 + 62}", "h\x02w\x03getn\x09\x00\x3e\x00\x00\x00\x00\x00\x00\x00\x01", invalid},
		{"{get, canonical}", "h\x02w\x03getw\x09canonical", text(formats.Canonical)},
		{"{get, canonical}, ATOM_EXT", "h\x02d\x00\x03getd\x00\x09canonical", text(formats.Canonical)},
		{"{get}", "h\x01w\x03get", unknown},
		{"{get, 1, 2}", "h\x03w\x03geta\x01a\x02", unknown},
		{"{}", "h\x00", unknown},
		{"{put, 10}", "h\x02w\x03puta\x0a", unknown},
		{"{<<get>>, 10}", "h\x02m\x00\x00\x00\x03geta\x0a", unknown},
		{"{{}, 10}", "h\x02h\x00a\x0a", unknown},
		{"nonsense", "w\x08nonsense", unknown},
		{"Get", "w\x03Get", unknown},
		{"<<get>>", "m\x00\x00\x00\x03get", unknown},
		{"\"get\"", "k\x00\x03get", unknown},
		{"[get]", "l\x00\x00\x00\x01w\x03getj", unknown},
		{"10", "a\x0a", unknown},
		{"[]", "j", unknown},
		{"#{get => 10}", "t\x00\x00\x00\x01w\x03geta\x0a", unknown},
	} {
		var got request
		if got.decode([]byte(test.term)); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// Replies have the forms that a current, an older and the oldest peer can read.
func TestReply(t *testing.T) {
	const octets = "m\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00"
	const binary = "k\x00\x131110000000000000000"
	old := etf.Caps{SmallAtomTags: true}
	for _, test := range []struct {
		request          string
		err              error
		today, old, last string
	}{
		{"w\x03get", nil, "h\x02w\x02ok" + octets, "h\x02s\x02ok" + octets, "h\x02d\x00\x02ok" + octets},
		{"h\x02w\x03geta\x3e", nil, "h\x02w\x02okk\x00\x041vLE", "h\x02s\x02okk\x00\x041vLE",
			"h\x02d\x00\x02okk\x00\x041vLE"},
		{"h\x02w\x03geta\x02", nil, "h\x02w\x02ok" + binary, "h\x02s\x02ok" + binary, "h\x02d\x00\x02ok" + binary},
		{"w\x08nonsense", nil, "w\x02ok", "s\x02ok", "d\x00\x02ok"},
		{"h\x02w\x03geta\x01", nil, "h\x02w\x05errorw\x06badarg", "h\x02s\x05errors\x06badarg",
			"h\x02d\x00\x05errord\x00\x06badarg"},
		{"w\x03get", flake.ErrClockBackwards, "h\x02w\x05errorw\x17clock_running_backwards",
			"h\x02s\x05errors\x17clock_running_backwards", "h\x02d\x00\x05errord\x00\x17clock_running_backwards"},
	} {
		left := 1
		if test.err != nil {
			left = 0
		}
		for caps, want := range map[etf.Caps]string{etf.AllCaps: test.today, old: test.old, {}: test.last} {
			got := reply(handlerOf(&stock{perTick: 1, left: left, err: test.err}), []byte(test.request), caps)
			if string(got) != want {
				t.Errorf("%q: %q, want %q", test.request, got, want)
			}
		}
	}
}

// If the source fails, only requests for ids fail.
func TestOnlyIDsFail(t *testing.T) {
	for request, want := range map[string]string{
		"get": "{error,shutdown}", "{get,16}": "{error,shutdown}", "{get,1}": "{error,badarg}", "hello": "ok",
	} {
		if got := call(t, handlerOf(&stock{perTick: 1, err: flake.ErrClosed}), request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// Unknown calls, casts and messages are logged as Erlang text. Other calls are not.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	h := handlerOf(&stock{perTick: 1, left: 1})
	h.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	call(t, h, "nonsense")
	call(t, h, "{get,1,2,3}")
	h.HandleCast([]byte("w\x05hello"), nil)
	h.HandleInfo([]byte("w\x04bare"), nil)
	call(t, h, "get")
	call(t, h, "{get,1}")
	for i, want := range []string{"level=WARN msg=\"unknown call, answered ok\" request=nonsense",
		"level=WARN msg=\"unknown call, answered ok\" request={get,1,2,3}",
		"level=DEBUG msg=\"cast dropped\" request=hello", "level=DEBUG msg=\"message dropped\" term=bare", ""} {
		if line, _ := log.ReadString('\n'); !strings.Contains(line, want) || (want == "") != (line == "") {
			t.Errorf("line %d: %s, want %s", i, line, want)
		}
	}
}

// persistent_timer knows one call, as in the original.
func TestTimer(t *testing.T) {
	for request, want := range map[string]string{"get_last_timestamp": "{ok,-62135596800000}", "other": "ok",
		"{get}": "ok"} {
		c := &caller{caps: etf.AllCaps}
		Timer{IDs: new(stock)}.HandleCall(genserver.Call{Caller: c, From: from, Request: external(t, request, etf.AllCaps)})
		if got := string(etf.FormatRaw(nil, []byte(c.answers[0]), 100)); got != "{9,"+want+"}" {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// FuzzRequest checks that every request is answered by one well-formed term.
func FuzzRequest(f *testing.F) {
	for _, term := range []string{
		"w\x03get", "h\x02w\x03geta\x3e", "h\x02d\x00\x03getn\x09\x00123456789", "h\x01w\x03get",
		"h\x02w\x03getw\x09canonical", "h\x03w\x03getw\x04metaa\x07", "h\x03w\x08get_manya\x03a\x02",
		"h\x02w\x0aget_binarya\x03", "h\x02w\x05leaseb\x00\x01\x00\x01", "h\x02w\x08notionala\x01",
		"h\x03w\x08notionala\x01n\x08\x00\xff\xff\xff\xff\xff\xff\xff\xff", "w\x04info",
		"h\x02w\x09decomposem\x00\x00\x00\x101234567890123456", "h\x03w\x09decomposek\x00\x02Zza\x3e",
		"h\x02w\x09decomposek\x00\x24000001a1-fb17-587b-7a00-78ffe3d40000",
	} {
		f.Add([]byte(term))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		for _, caps := range []etf.Caps{{}, etf.AllCaps} {
			got := reply(handlerOf(&stock{perTick: 1 << 16, left: 100}), request, caps)
			if _, err := etf.Decode(got); err != nil {
				t.Errorf("%x is answered %x: %v", request, got, err)
			}
		}
	})
}
