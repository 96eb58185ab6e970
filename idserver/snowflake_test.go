package idserver

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/snowflake"
)

// All calls work with 64-bit ids. The last id is from 2026-01-01.
func TestSnowflake(t *testing.T) {
	const milli = 1767225600000
	twitter, idgen := snowflake.Twitter, snowflake.Idgen
	twitter.Epoch, twitter.Datacenter, twitter.Worker = 1577836800000, 5, 5
	for name, test := range map[string]struct {
		layout  snowflake.Layout
		machine snowflake.Machine
		first   uint64 // the first id
		who     string // the id's first fields
	}{
		"snowflake": {twitter, 9<<5 | 7, 794354201396408320,
			"{time 1767225600000 1 41} {datacenter 9 42 5} {worker 7 47 5}"},
		"flake-idgen": {idgen, 1023, 7412281402986590208, "{time 1767225600000 0 42} {datacenter 31 42 5} {worker 31 47 5}"},
		"one machine": {snowflake.Twitter, 1023, 2006515713442836480, "{time 1767225600000 1 41} {machine 1023 42 10}"},
	} {
		t.Run(name, func(t *testing.T) {
			ids, err := test.layout.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), test.machine,
				snowflake.Options{Clock: func() uint64 { return milli }})
			if err != nil {
				t.Fatal(err)
			}
			defer ids.Close()
			s := &Server{IDs: formats.Snowflake(ids)}
			f, canonical := s.IDs.Format(), strconv.FormatUint(test.first, 10)
			expect(t, fmt.Sprintf("{0 %d}", test.first))(s.Get(t.Context(), Meta{}))
			expect(t, fmt.Sprintf("[{{0 %d} 3 %s}]", test.first+1, f.Name))(s.Take(t.Context(), KindLease, 3, Meta{}, nil))
			expect(t, "badarg")(s.Get(t.Context(), Meta{0, true}))
			expect(t, fmt.Sprintf("{0 %d} [%s {sequence 0 52 12}]", test.first, test.who))(
				s.decompose(canonical, formats.Canonical))
			expect(t, canonical)(string(f.Append(nil, formats.Number{Lo: test.first}, formats.Canonical)), nil)
			if got := f.Name; (got == "flake-idgen") != (name == "flake-idgen") {
				t.Errorf("format %s", got)
			}
			if last, sequence := s.IDs.Last(); last != milli || sequence != 3 || s.IDs.Worker() != uint64(test.machine) {
				t.Errorf("the last id is %d:%d, of worker %d", last, sequence, s.IDs.Worker())
			}
			ids.Close()
			expect(t, "shutdown")(s.Get(t.Context(), Meta{}))
		})
	}
}

// Times that 64 bits cannot hold are refused.
func TestSnowflakeRange(t *testing.T) {
	l := snowflake.Twitter
	l.Epoch = 1577836800000
	ids, err := l.NewGenerator(1, snowflake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{IDs: formats.Snowflake(ids)}
	expect(t, "{0 794354201395200000} {0 794354201403588607}")(s.Span(KindSpan, 1767225600000, 1767225600001))
	expect(t, "badarg")(s.Span(KindSpan, l.Epoch-1, l.Epoch))
	expect(t, "badarg")(s.Span(KindSpan, l.Epoch, math.MaxUint64))
	expect(t, "badarg")(s.notional(l.Epoch - 1))
}

// With random starts, a run ends where the sequence wraps to 0. Many ids are still in ascending
// order.
func TestSnowflakeRandomStart(t *testing.T) {
	milli := uint64(1767225600000)
	ids, err := snowflake.Twitter.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), 1,
		snowflake.Options{RandomStart: true, Clock: func() uint64 { milli++; return milli / 8 * 8 }})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	s := &Server{IDs: formats.Snowflake(ids)}
	runs, err := s.Take(t.Context(), KindGetMany, 20_000, Meta{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var last formats.Number
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
		if err != nil || i > 0 && last != 1<<12-1 { // the rest of a millisecond ends before its start
			t.Errorf("%+v, %v: ends with sequence %d", run, err, last)
		}
	}
}

// A request for more ids than MaxTicks ticks have is refused, and takes none.
func TestMaxTicks(t *testing.T) {
	l := snowflake.Twitter
	l.Worker, l.Sequence = 22, 0
	ids, err := l.NewGenerator(1, snowflake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{IDs: formats.Snowflake(ids)}
	if _, err := s.lease(t.Context(), MaxTicks+1); err != ErrBadArgument || s.Stats().IDs != 0 {
		t.Errorf("one too many: %v, %d ids", err, s.Stats().IDs)
	}
	if _, err := s.lease(t.Context(), MaxTicks); err != nil || s.Stats().IDs != MaxTicks {
		t.Errorf("the maximum: %v, %d ids", err, s.Stats().IDs)
	}
}
