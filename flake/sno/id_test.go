package sno

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// vectors returns ids that muyo/sno v1.2.1 made.
func vectors(t testing.TB) (all []vector) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		t.Fatalf("testdata/vectors.json: %d vectors, %v", len(all), err)
	}
	return all
}

type vector struct {
	Parts
	ID, Text string
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		id, err := Make(v.Parts)
		if got := hex.EncodeToString(id[:]); got != v.ID || err != nil {
			t.Errorf("%+v: %s, %v, want %s", v.Parts, got, err, v.ID)
		}
		if got := id.String(); got != v.Text {
			t.Errorf("%s: %q, want %q", v.ID, got, v.Text)
		}
		if back, err := Parse(v.Text); back != id || err != nil {
			t.Errorf("%q: %x, %v, want %s", v.Text, back, err, v.ID)
		}
		if got := id.Decompose(); got != v.Parts {
			t.Errorf("%s: %+v, want %+v", v.ID, got, v.Parts)
		}
	}
}

func TestMake(t *testing.T) {
	for milli, want := range map[uint64]string{
		0: "", Epoch - 1: "", Epoch: "2010-01-01T00:00:00Z", Epoch + 3: "2010-01-01T00:00:00Z",
		Epoch + 4:    "2010-01-01T00:00:00.004Z",
		MaxMilli - 4: "2079-09-07T15:47:35.544Z", MaxMilli: "2079-09-07T15:47:35.548Z", MaxMilli + 1: "", 1<<64 - 1: "",
	} {
		id, err := Make(Parts{Milli: milli})
		if (err != nil) != (want == "") {
			t.Errorf("%d: %v", milli, err)
		} else if got := id.Time().Format(time.RFC3339Nano); err == nil &&
			(got != want || id.Timestamp() != id.Time().UnixNano()) {
			t.Errorf("%d: %s, %d ns, want %s", milli, got, id.Timestamp(), want)
		}
	}
}

func TestSpan(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	lowest, highest := Span(at, at.Add(Unit))
	for _, c := range []struct {
		parts  Parts
		inside bool
	}{
		{Parts{Milli: uint64(at.UnixMilli())}, true},
		{Parts{Milli: uint64(at.UnixMilli()) - 4, TickTock: true, Meta: 255, Partition: Partition{255, 255},
			Sequence: 65535}, false},
		{Parts{Milli: uint64(at.UnixMilli()) + 4, TickTock: true, Meta: 255, Partition: Partition{255, 255},
			Sequence: 65535}, true},
		{Parts{Milli: uint64(at.UnixMilli()) + 8}, false},
	} {
		id, _ := Make(c.parts)
		if inside := id.Compare(lowest) >= 0 && id.Compare(highest) <= 0; inside != c.inside {
			t.Errorf("%+v: %v", c.parts, inside)
		}
	}
	if lowest, highest := Span(time.Time{}, time.Unix(1<<40, 0)); lowest != (ID{}) || highest != maxID {
		t.Errorf("Span over all time: %v to %v", lowest, highest)
	}
	if Notional(at) != lowest {
		t.Error("a notional id is not the lowest of its time")
	}
}

// someIDs returns the lowest id, the highest, and random ones.
func someIDs() []ID {
	rng := rand.New(rand.NewPCG(3, 4))
	ids := []ID{{}, maxID}
	for range 2000 {
		var id ID
		for i := range id {
			id[i] = byte(rng.Uint32()) & byte(-rng.Uint32N(2))
		}
		ids = append(ids, id)
	}
	return ids
}

func TestOrder(t *testing.T) {
	ids := someIDs()
	slices.SortFunc(ids, ID.Compare)
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	if !slices.IsSorted(texts) || !slices.IsSortedFunc(ids, ID.Compare) {
		t.Error("the ids' strings do not sort as the ids do")
	}
}

func TestPartition(t *testing.T) {
	var p Partition
	if p.PutUint16(0x410a); p != (Partition{'A', 10}) || p.AsUint16() != 0x410a {
		t.Errorf("%v", p)
	}
}

func TestPartitionsExhausted(t *testing.T) {
	given := partitions.given.Swap(1 << 16)
	defer partitions.given.Store(given)
	if _, err := NewGenerator(nil, Options{}); !errors.Is(err, ErrPartitionsExhausted) {
		t.Error(err)
	}
}

func TestPartitionsOnce(t *testing.T) {
	p := pool{seed: 65000}
	seen := map[Partition]bool{}
	for range 1 << 16 {
		partition, err := p.next()
		if err != nil || seen[partition] {
			t.Fatalf("%v, %v", partition, err)
		}
		seen[partition] = true
	}
	for range 2 {
		if partition, err := p.next(); err != ErrPartitionsExhausted {
			t.Fatalf("%v, %v", partition, err)
		}
	}
}
