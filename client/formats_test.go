package client

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// Ids with random bits ascend, and have different random bits, whichever method returns them.
func TestRandomBits(t *testing.T) {
	uuids, err1 := uuidv7.NewGenerator(worker, flake.Options{})
	ulids, err2 := ulid.NewGenerator(worker, flake.Options{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	t.Run("uuidv7", func(t *testing.T) { testRandomBits(t, formats.UUIDv7(uuids), uuidv7.Parse, uuidv7.Span) })
	t.Run("ulid", func(t *testing.T) { testRandomBits(t, formats.ULID(ulids), ulid.Parse, ulid.Span) })
}

type randomID interface {
	uuidv7.ID | ulid.ID
	Random() uint16
	Worker() flake.Worker
	Time() time.Time
}

func testRandomBits[ID randomID](t *testing.T, source formats.Source,
	parse func(string) (ID, error), span func(first, last time.Time) (ID, ID),
) {
	f := new(flakes)
	f.serve(t, source)
	for what, door := range f.doors(t) {
		ids := NewIDs[ID](NewFailover(door), "flake")
		leased, err := ids.Leased(LeaseOptions{Size: 700})
		if err != nil {
			t.Fatal(err)
		}
		defer leased.Close()
		all := make([]ID, 1, 30_000)
		if all[0], err = ids.Next(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		all = all[:20_001]
		if _, err := ids.NextN(t.Context(), all[1:]); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for range 2000 {
			id, err := leased.Next(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			all = append(all, id)
		}
		bits := make(map[uint16]bool)
		for i, id := range all {
			if bits[id.Random()] = true; id.Worker() != worker {
				t.Fatalf("%s: %v has another worker", what, id)
			}
			if i > 0 && numberOf(all[i-1]).Compare(numberOf(id)) >= 0 {
				t.Fatalf("%s: %v after %v", what, id, all[i-1])
			}
		}
		if len(bits) < 5000 {
			t.Errorf("%s: %d ids have %d different random bits", what, len(all), len(bits))
		}
		at := all[0].Time()
		lowest, highest := span(at, at)
		if l, h, err := ids.Span(t.Context(), at, at); err != nil || l != lowest || h != highest {
			t.Errorf("%s: %v, %v, %v", what, l, h, err)
		}
		fields, err := ids.Decompose(t.Context(), all[0])
		if err != nil || fields[0] != (Field{"time", uint64(at.UnixMilli())}) {
			t.Errorf("%s: %v, %v", what, fields, err)
		}
		texts, err := NewIDs[ID](door, "flake").Texts(t.Context(), 1, Canonical)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if id, err := parse(texts[0]); err != nil || numberOf(all[0]).Compare(numberOf(id)) >= 0 {
			t.Errorf("%s: %s, %v", what, texts[0], err)
		}
		for base, width := range map[int]int{UUID: 36, Crockford: 26} {
			texts, err := NewIDs[ID](door, "flake").Texts(t.Context(), 2, base)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if id, err := formatOf[ID]().Parse(texts[1], base); err != nil || len(texts[1]) != width ||
				numberOf(all[0]).Compare(id) >= 0 {
				t.Errorf("%s: %s, %v", what, texts, err)
			}
		}
		if id, err := NewIDs[flake.ID](door, "flake").Next(t.Context()); err == nil {
			t.Errorf("%s: %v is taken for an id of flake", what, id)
		}
	}
}

// A run may reach the last sequence of its time, but not go beyond it: the next ids have another
// time, worker or version, and another generator may make them.
func TestRunTooLong(t *testing.T) {
	const milli = 1_700_000_000_000
	uuid, err1 := uuidv7.Make(milli, worker, 1<<12-3, 9)
	other, err2 := ulid.Make(milli, worker, 1<<16-3, 9)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	testRunTooLong(t, flake.Make(milli, worker, 1<<16-3), 3)
	testRunTooLong(t, uuid, 3)
	testRunTooLong(t, other, 3)
	testRunTooLong(t, sno.ID{3, 0, 0, 0, 0, 0, 0, 7, 0xff, 0xfd}, 3)
	testRunTooLong(t, snowflake.ID(math.MaxUint64-2), 3)
	testRunTooLong(t, snowflake.ID(1<<22-1<<18-5), 1<<18+5)
	testRunTooLong(t, uuidv7.ID(slices.Concat(uuid[:6], []byte{0x70, 0}, uuid[8:])), 1<<12)
}

func testRunTooLong[ID Format](t *testing.T, first ID, most int) {
	t.Helper()
	for _, n := range []int{1, most, most + 1, most + 1<<12, most + 1<<16} {
		door := &odd{runs: []run{{bytesOf(first), n}}}
		if _, err := NewIDs[ID](door, "ids").Lease(t.Context(), n); (err == nil) != (n <= most) {
			t.Errorf("%T: %d ids, want at most %d: %v", first, n, most, err)
		}
	}
}
