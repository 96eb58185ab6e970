package idserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// All calls work with ids that have a sequence in their first half. The ids are from 2026-01-01.
func TestHalves(t *testing.T) {
	const milli, worker = 1767225600000, flake.Worker(0x0200_0000_0007)
	o := flake.Options{Clock: func() uint64 { return milli }}
	path := filepath.Join(t.TempDir(), "timestamp")
	uuids, err1 := uuidv7.Open(t.Context(), path+"-uuidv7", worker, o)
	ulids, err2 := ulid.Open(t.Context(), path+"-ulid", worker, o)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for name, test := range map[string]struct {
		ids             formats.Source
		format          *formats.Format
		text, uuid      string // of an id
		fields          string
		lowest, highest string
		most            string // the highest of all
	}{
		"uuidv7": {formats.UUIDv7(uuids), formats.KindOf("uuidv7").Format(nil), "019b76da-a800-7001-8080-00000001e345",
			"019b76da-a800-7001-8080-00000001e345",
			"[{time 1767225600000 0 48} {version 7 48 4} {sequence 1 52 12} {variant 2 64 2} {worker 2199023255559 66 48} " +
				"{random 9029 114 14}]",
			"019b76da-a800-7000-8000-000000000000", "019b76da-a801-7fff-bfff-ffffffffffff",
			"ffffffff-ffff-7fff-bfff-ffffffffffff"},
		"ulid": {formats.ULID(ulids), formats.KindOf("ulid").Format(nil), "01KDVDNA00000G40000000E8T5",
			"019b76da-a800-0001-0200-000000072345",
			"[{time 1767225600000 0 48} {sequence 1 48 16} {worker 2199023255559 64 48} {random 9029 112 16}]",
			"01KDVDNA000000000000000000", "01KDVDNA01ZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := &Server{IDs: test.ids}, test.format
			text := func(id formats.Number) string { return string(f.Append(nil, id, formats.Canonical)) }
			id, err := f.Parse(test.text, formats.Canonical)
			if err != nil || text(id) != test.text || s.IDs.Format() != f || f.Name != name || f.Size != 16 {
				t.Errorf("%v, %v, %s", id, err, text(id))
			}
			expect(t, fmt.Sprint(id)+" "+test.fields)(s.decompose(test.text, formats.Canonical))
			expect(t, fmt.Sprint(id)+" "+test.fields)(s.decompose(test.uuid, formats.Canonical))
			expect(t, fmt.Sprint(id)+" "+test.fields)(s.decompose(string(id.AppendOctets(nil, 16)), formats.Octets))
			expect(t, "badarg")(s.Get(t.Context(), Meta{0, true}))
			ofUUID := formats.KindOf("uuidv7").Format(nil)
			_, err = ofUUID.Parse(string(f.Append(nil, id, 62)), 62)
			if (err == nil) != (f == ofUUID) {
				t.Errorf("as a UUID: %v", err)
			}
			low, high, err := s.Span(KindSpan, milli, milli+1)
			if text(low) != test.lowest || text(high) != test.highest || err != nil {
				t.Errorf("%s to %s, %v", text(low), text(high), err)
			}
			_, high, err = s.Span(KindSpan, 0, uuidv7.MaxMilli)
			if text(high) != test.most || err != nil {
				t.Errorf("the highest is %s, %v", text(high), err)
			}
			expect(t, "badarg")(s.notional(uuidv7.MaxMilli + 1))
			expect(t, "badarg")(s.Span(KindSpan, 0, math.MaxUint64))
			testHalvesRuns(t, s)
		})
	}
	for _, s := range []*Server{{IDs: formats.UUIDv7(uuids)}, {IDs: formats.ULID(ulids)}} {
		if last, sequence := s.IDs.Last(); last != milli || sequence != 2000 || s.IDs.Worker() != uint64(worker) {
			t.Errorf("the last id is %d:%d", last, sequence)
		}
	}
	testLastSequence(t, &Server{IDs: formats.UUIDv7(uuids)})
	for _, err := range []error{uuids.Close(), ulids.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	expect(t, "shutdown")((&Server{IDs: formats.UUIDv7(uuids)}).Get(t.Context(), Meta{}))
	expect(t, "shutdown")((&Server{IDs: formats.ULID(ulids)}).Get(t.Context(), Meta{}))
}

// testHalvesRuns takes 2,001 ids. Consecutive ids form one run, even if they were taken in several
// shares. They differ only in the sequence and in their random bits.
func testHalvesRuns(t *testing.T, s *Server) {
	field := func(id formats.Number, name string) uint64 {
		for _, f := range s.IDs.Format().Fields(id) {
			if f.Name == name {
				return f.Value
			}
		}
		return math.MaxUint64
	}
	first, err := s.Get(t.Context(), Meta{})
	if err != nil || field(first, "sequence") != 0 || field(first, "worker") != s.IDs.Worker() {
		t.Errorf("%v, %v", first, err)
	}
	for n := 1; n <= 1001; n += 1000 {
		var runs []formats.Run
		for len(runs) < 2 {
			run, err := s.IDs.Reserve(t.Context(), 500, 0)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		if !runs[0].FollowedBy(runs[1]) || runs[1].FollowedBy(runs[0]) || runs[0].FollowedBy(runs[0]) {
			t.Errorf("%v, then %v", runs[0], runs[1])
		}
		random := map[uint64]bool{}
		i := uint64(n)
		last := first
		for id := range All(runs) {
			if field(id, "sequence") != i || id.Compare(last) <= 0 || field(id, "worker") != s.IDs.Worker() ||
				field(id, "time") != field(first, "time") {
				t.Fatalf("id %d is %v, after %v", i, id, last)
			}
			random[field(id, "random")] = true
			last = id
			i++
		}
		if len(random) < 900 || i != uint64(n+1000) {
			t.Errorf("%d ids have %d different random parts", n, len(random))
		}
	}
}

// testLastSequence uses up the ids of a millisecond. The server returns no id with the last
// sequence: in such ids the random bits are a counter, and clients may replace the random bits.
func testLastSequence(t *testing.T, s *Server) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n, taken := 1000, 2001; n > 0; {
		runs, err := s.Take(ctx, KindGetMany, n, Meta{}, nil)
		switch {
		case err == nil:
			taken += n
		case !errors.Is(err, context.Canceled):
			t.Fatalf("after %d ids: %v, %v", taken, runs, err)
		default:
			n /= 10
		}
		if taken > 1<<12-1 {
			t.Fatalf("took %d ids of one millisecond, want at most 4095", taken)
		}
	}
	if id, err := s.Get(ctx, Meta{}); !errors.Is(err, context.Canceled) {
		t.Errorf("one more id: %v, %v", id, err)
	}
	if _, sequence := s.IDs.Last(); sequence != 1<<12-2 {
		t.Errorf("the last sequence is %d", sequence)
	}
}
