package idserver

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/node/etf"
)

// The calls of 64-bit ids, the last one being at 2026-01-01.
func TestSnowflake(t *testing.T) {
	const milli = 1767225600000
	twitter, idgen := snowflake.Twitter, snowflake.Idgen
	twitter.Epoch, twitter.Datacenter, twitter.Worker = 1577836800000, 5, 5
	for name, test := range map[string]struct {
		layout  snowflake.Layout
		machine snowflake.Machine
		calls   []struct{ request, want string }
		state   string // then
	}{
		"snowflake": {twitter, 9<<5 | 7, []struct{ request, want string }{
			{"get", "{ok,<<11,6,28,240,0,18,112,0>>}"},
			{"{get,10}", `{ok,"794354201396408321"}`},
			{"{get,canonical}", `{ok,"794354201396408322"}`},
			{"{get,meta,0}", "{error,badarg}"},
			{"{lease,3}", "{ok,[{<<11,6,28,240,0,18,112,3>>,3}]}"},
			{`{decompose,"794354201396408322"}`, "{ok,[{time,1767225600000},{datacenter,9},{worker,7},{sequence,2}]}"},
			{`{decompose,"b061cf000127002"}`, "{ok,[{time,1767225600000},{datacenter,9},{worker,7},{sequence,2}]}"},
			{`{decompose,"0xb061cf000127002"}`, "{ok,[{time,1767225600000},{datacenter,9},{worker,7},{sequence,2}]}"},
			{`{decompose,"61d0a00"}`, "{ok,[{time,1577836800024},{datacenter,14},{worker,16},{sequence,2560}]}"},
			{`{decompose,"0xb061cf00012700200"}`, "{error,badarg}"},
			{`{decompose,"zzzzzzzzzzz",62}`, "{error,badarg}"},
			{"{notional,1767225600000,1767225600001}", "{ok,{<<11,6,28,240,0,0,0,0>>,<<11,6,28,240,0,127,255,255>>}}"},
			{"{notional,1577836799999}", "{error,badarg}"},
			{"{notional,1577836799999,1577836800000}", "{error,badarg}"},
		}, "{state,1767225600000,295,5}"},
		"flake-idgen": {idgen, 1023, []struct{ request, want string }{
			{"get", "{ok,<<102,221,182,170,0,63,240,0>>}"},
			{"{get,canonical}", `{ok,"7412281402986590209"}`},
			{`{decompose,<<102,221,182,170,0,63,240,0>>}`, "{ok,[{time,1767225600000},{datacenter,31},{worker,31},{sequence,0}]}"},
		}, "{state,1767225600000,1023,1}"},
		"one machine": {snowflake.Twitter, 1023, []struct{ request, want string }{
			{`{decompose,"2006515713442836480"}`, "{ok,[{time,1767225600000},{machine,1023},{sequence,0}]}"},
		}, "{state,1288834974657,1023,0}"},
	} {
		t.Run(name, func(t *testing.T) {
			ids, err := test.layout.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), test.machine,
				snowflake.Options{Clock: func() uint64 { return milli }})
			if err != nil {
				t.Fatal(err)
			}
			defer ids.Close()
			s := &Server{IDs: Snowflake(ids), Log: slog.New(slog.DiscardHandler)}
			for _, c := range test.calls {
				if got := call(t, s, c.request); got != c.want {
					t.Errorf("%s: %s, want %s", c.request, got, c.want)
				}
			}
			if got := s.IDs.Format().Name(); (got == "flake-idgen") != (name == "flake-idgen") {
				t.Errorf("format %s", got)
			}
			bit := 64 - 22 - int(test.layout.Time)
			for _, f := range s.IDs.Format().Fields(Number{}) {
				if f.Offset != bit {
					t.Errorf("%s begins at %d, want %d", f.Name, f.Offset, bit)
				}
				bit += f.Width
			}
			if bit != 64 {
				t.Errorf("%d bits", bit)
			}
			if got := string(etf.Format(nil, s.State())); got != test.state {
				t.Errorf("%s, want %s", got, test.state)
			}
			ids.Close()
			if got, want := call(t, s, "get"), "{error,shutdown}"; got != want {
				t.Errorf("closed: %s", got)
			}
		})
	}
}

// With random starts a run ends where the sequence goes on from 0, and many ids
// ascend nevertheless.
func TestSnowflakeRandomStart(t *testing.T) {
	milli := uint64(1767225600000)
	ids, err := snowflake.Twitter.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), 1,
		snowflake.Options{RandomStart: true, Clock: func() uint64 { milli++; return milli / 8 * 8 }})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	s := &Server{IDs: Snowflake(ids), Log: slog.New(slog.DiscardHandler)}
	runs, err := s.GetMany(t.Context(), 20_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	var last Number
	n := 0
	for id := range All(runs) {
		if id.Compare(last) <= 0 {
			t.Fatalf("%v after %v", id, last)
		}
		last = id
		n++
	}
	if n != 20_000 {
		t.Errorf("%d ids", n)
	}
	for i := range 10 {
		run, err := s.IDs.Reserve(t.Context(), 1<<12, 0)
		last := run.First.Plus(run.Count-1).Lo % (1 << 12)
		if err != nil || i > 0 && last != 1<<12-1 { // what was left of a millisecond ends before its start
			t.Errorf("%+v, %v: ends with sequence %d", run, err, last)
		}
	}
}

// A request for more ids than there are in MaxTicks is refused, and uses none up.
func TestMaxTicks(t *testing.T) {
	l := snowflake.Twitter
	l.Worker, l.Sequence = 22, 0
	ids, err := l.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), 1, snowflake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	s := &Server{IDs: Snowflake(ids), Log: slog.New(slog.DiscardHandler)}
	if _, err := s.lease(t.Context(), MaxTicks+1); err != ErrBadArgument || s.Stats().IDs != 0 {
		t.Errorf("one too many: %v, %d ids", err, s.Stats().IDs)
	}
	if _, err := s.lease(t.Context(), MaxTicks); err != nil || s.Stats().IDs != MaxTicks {
		t.Errorf("as many as there may be: %v, %d ids", err, s.Stats().IDs)
	}
}
