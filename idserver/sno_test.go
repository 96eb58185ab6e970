package idserver

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/node/etf"
)

// The calls of sno's ids, the last one being at 2026-01-01.
func TestSno(t *testing.T) {
	const milli = 1767225600000
	ids, err := sno.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), &sno.Snapshot{Partition: sno.Partition{'A', 10}},
		sno.Options{Clock: func() uint64 { return milli + 3 }})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	s := &Server{IDs: Sno(ids), Log: slog.New(slog.DiscardHandler)}
	for _, c := range []struct{ request, want string }{
		{"get", "{ok,<<58,199,214,24,0,0,65,10,0,0>>}"},
		{"{get,meta,0}", "{ok,<<58,199,214,24,0,0,65,10,0,1>>}"},
		{"{get,meta,255}", "{ok,<<58,199,214,24,0,255,65,10,0,2>>}"},
		{"{get,meta,256}", "{error,badarg}"},
		{"{get,canonical}", `{ok,"9d5ve822232im225"}`},
		{"{get,16}", `{ok,"3AC7D6180000410A0004"}`},
		{"{get_many,2,canonical}", `{ok,["9d5ve822232im227","9d5ve822232im228"]}`},
		{"{lease,3}", "{ok,[{<<58,199,214,24,0,0,65,10,0,7>>,3}]}"},
		{`{decompose,"9d5ve82329xxxxxx"}`, "{ok,[{time,1767225600000},{tick_tock,1},{meta,1},{partition,65535},{sequence,65535}]}"},
		{"{notional,1767225600000,1767225600004}", "{ok,{<<58,199,214,24,0,0,0,0,0,0>>,<<58,199,214,24,3,255,255,255,255,255>>}}"},
		{`{decompose,"9d5ve822232im225"}`, "{ok,[{time,1767225600000},{tick_tock,0},{meta,0},{partition,16650},{sequence,3}]}"},
		{"{notional,1262304000000,3461327255551}", "{ok,{<<0,0,0,0,0,0,0,0,0,0>>,<<\"ÿÿÿÿÿÿÿÿÿÿ\">>}}"},
		{"{notional,1262303999999}", "{error,badarg}"},
		{"{notional,3461327255552}", "{error,badarg}"},
	} {
		if got := call(t, s, c.request); got != c.want {
			t.Errorf("%s: %s, want %s", c.request, got, c.want)
		}
	}
	if i := s.Info(); i.Worker != 'A'<<8|10 || i.Mark.UnixMilli() <= milli {
		t.Errorf("%+v", i)
	}
	if got, want := string(etf.Format(nil, s.State())), "{state,1767225600000,16650,9}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	ids.Close()
	if got := call(t, s, "get"); !strings.Contains(got, "shutdown") {
		t.Errorf("closed: %s", got)
	}
	for _, request := range []string{"get", "{get_many,1}"} {
		if got, want := call(t, &Server{IDs: Sno(new(sno.Generator))}, request), "{error,system_limit}"; got != want {
			t.Errorf("%s of no generator: %s, want %s", request, got, want)
		}
	}
}
