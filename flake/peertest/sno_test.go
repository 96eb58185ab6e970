package peertest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	peer "github.com/muyo/sno"

	"github.com/flake-go/flake/flake/sno"
)

func randomSno(rng *rand.Rand) (id sno.ID) {
	for i := range id {
		id[i] = byte(rng.Uint32()) & byte(-rng.Uint32N(2))
	}
	return id
}

func check[T comparable](t *testing.T, what string, ours, theirs T) {
	t.Helper()
	if ours != theirs {
		t.Fatalf("%s: %v, theirs %v", what, ours, theirs)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSno(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ids := []sno.ID{{}, sno.ID(bytes.Repeat([]byte{255}, 10))}
	for range *peerIDs {
		ids = append(ids, randomSno(rng))
	}
	for i, id := range ids {
		theirs := peer.ID(id)
		check(t, "text", id.String(), theirs.String())
		check(t, "parsed", must(sno.Parse(theirs.String())), id)
		check(t, "parsed by them", peer.ID(id), must(peer.FromEncodedString(id.String())))
		if !id.IsZero() { // muyo/sno writes the zero id as null
			check(t, "JSON", string(must(json.Marshal(id))), string(must(json.Marshal(theirs))))
		}
		check(t, "SQL", string(must(id.Value()).([]byte)), string(must(theirs.Value()).([]byte)))
		check(t, "time", id.Time(), theirs.Time().UTC())
		check(t, "metabyte", id.Meta(), theirs.Meta())
		check(t, "partition", id.Partition().AsUint16(), theirs.Partition().AsUint16())
		check(t, "sequence", id.Sequence(), theirs.Sequence())
		check(t, "zero", id.IsZero(), theirs.IsZero())
		other := ids[rng.IntN(i+1)]
		check(t, "order", id.Compare(other), theirs.Compare(peer.ID(other)))
	}
	theirs := make([]peer.ID, len(ids))
	for i := range ids {
		theirs[i] = peer.ID(ids[i])
	}
	slices.SortFunc(ids, sno.ID.Compare)
	peer.Sort(theirs)
	if !slices.EqualFunc(ids, theirs, func(a sno.ID, b peer.ID) bool { return a == sno.ID(b) }) {
		t.Error("the two libraries sort ids differently")
	}
}

func TestSnoVectors(t *testing.T) {
	var all []struct {
		sno.Parts
		ID, Text string
	}
	if err := json.Unmarshal(must(os.ReadFile("../sno/testdata/vectors.json")), &all); err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	for _, v := range all {
		id := must(peer.FromBinaryBytes(must(hex.DecodeString(v.ID))))
		check(t, "text", v.Text, id.String())
		check(t, "time", v.Milli, uint64(id.Time().UnixMilli()))
		check(t, "timestamp", sno.ID(id).Timestamp(), id.Timestamp())
		check(t, "metabyte", v.Meta, id.Meta())
		check(t, "partition", v.Partition, sno.Partition(id.Partition()))
		check(t, "sequence", v.Sequence, id.Sequence())
		check(t, "tick-tock bit", v.TickTock, id[4]&1 == 1)
	}
}

// snoConfigurations are snapshots in JSON, which both libraries can read.
var snoConfigurations = []string{
	`{}`,
	`{"partition": [65, 10]}`,
	`{"partition": [255, 255], "sequenceMin": 1024, "sequenceMax": 2047}`,
	`{"sequenceMin": 2047, "sequenceMax": 1024}`,
	`{"sequenceMin": 65535}`,
	`{"sequenceMin": 65530, "sequenceMax": 65535, "drifts": 7}`,
	`{"sequenceMin": 32768, "sequence": 40000}`,
	`{"sequenceMax": 5}`,
}

func snoPair(t *testing.T, config []byte, clock func() uint64) (*sno.Generator, *peer.Generator) {
	t.Helper()
	var ours sno.Snapshot
	var theirs peer.GeneratorSnapshot
	if err := json.Unmarshal(config, &ours); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(config, &theirs); err != nil {
		t.Fatal(err)
	}
	check(t, "JSON", string(must(json.Marshal(ours))), string(must(json.Marshal(theirs))))
	return must(sno.NewGenerator(&ours, sno.Options{Clock: clock})), must(peer.NewGenerator(&theirs, nil))
}

// Both libraries accept and reject the same bounds of the sequence, in either order. Their constants
// are equal once converted to the same unit.
func TestSnoBounds(t *testing.T) {
	for _, low := range []int{0, 1, 10, 65520, 65535} {
		for _, width := range []int{1, 2, 3, 4, 5, 6, 7, 100, 65536} {
			for _, at := range [][2]int{{low, low + width - 1}, {low + width - 1, low}} {
				if max(at[0], at[1]) > 65535 {
					continue
				}
				ours := sno.Snapshot{SequenceMin: uint16(at[0]), SequenceMax: uint16(at[1])}
				var theirs peer.GeneratorSnapshot
				if err := json.Unmarshal(must(json.Marshal(ours)), &theirs); err != nil {
					t.Fatal(err)
				}
				_, err := sno.NewGenerator(&ours, sno.Options{})
				_, peerErr := peer.NewGenerator(&theirs, nil)
				if (err == nil) != (peerErr == nil) ||
					errors.As(err, new(*sno.BoundsError)) != errors.As(peerErr, new(*peer.InvalidSequenceBoundsError)) {
					t.Errorf("%d to %d: %v, theirs %v", at[0], at[1], err, peerErr)
				}
			}
		}
	}
	check(t, "epoch", sno.Epoch, peer.Epoch*1000)
	check(t, "sizes", [4]int{sno.SizeBinary, sno.SizeEncoded, sno.MaxPartition, sno.MaxSequence},
		[4]int{peer.SizeBinary, peer.SizeEncoded, peer.MaxPartition, peer.MaxSequence})
	check(t, "unit", sno.Unit, time.Duration(peer.TimeUnit))
}

func TestSnoNewWithTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, config := range snoConfigurations {
		ours, theirs := snoPair(t, []byte(config), nil)
		check(t, "partition", ours.Partition(), sno.Partition(theirs.Partition()))
		check(t, "lowest", ours.SequenceMin(), theirs.SequenceMin())
		check(t, "highest", ours.SequenceMax(), theirs.SequenceMax())
		check(t, "number", ours.PerTick(), theirs.Cap())
		for range 70_000 {
			at := time.Unix(0, sno.Epoch*1e6+rng.Int64N((sno.MaxMilli+1-sno.Epoch)*1e6))
			meta := byte(rng.Uint32())
			check(t, config, must(ours.NewWithTime(at)).WithMeta(meta), sno.ID(theirs.NewWithTime(meta, at)))
		}
	}
}

// Before each id, our generator continues from theirs, and then both make the same id: in the tick
// of the last id, in another tick, and after the clock is set back.
func TestSnoNew(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	kinds := map[string]int{}
	for _, config := range snoConfigurations {
		_, theirs := snoPair(t, []byte(config), nil)
		for range 2_000 {
			before := theirs.Snapshot()
			if rng.IntN(10) == 0 { // the clock is set back by up to 2 s
				before.WallHi = before.Now + 1 + rng.Int64N(500)
				before.WallSafe = before.Now - 1 - rng.Int64N(500)
				before.Now = before.WallHi
				theirs = must(peer.NewGenerator(&before, nil))
			}
			meta := byte(rng.Uint32())
			want := sno.ID(theirs.New(meta))
			after := theirs.Snapshot()
			ours, _ := snoPair(t, must(json.Marshal(before)), func() uint64 { return want.Milli() })
			got := must(ours.Next(t.Context())).WithMeta(meta)
			switch {
			case got.Sequence() != ours.Snapshot().SequenceMin:
				kinds["in the same tick"]++
			case after.Drifts != before.Drifts:
				kinds["set back"]++
			default:
				kinds["in another tick"]++
			}
			now := ours.Snapshot()
			if got != want || now.WallHi != after.WallHi || now.WallSafe != after.WallSafe || now.Drifts != after.Drifts ||
				after.Now == after.WallHi && now.Sequence != after.Sequence {
				t.Fatalf("from %+v:\nours: %x, then %+v\ntheirs: %x, then %+v", before, got, now, want, after)
			}
		}
	}
	t.Log(kinds)
	if len(kinds) != 3 {
		t.Error("not all kinds of ids occurred")
	}
}

func TestSnoPeerGoesOn(t *testing.T) {
	clock := uint64(time.Now().UnixMilli()) + 10_000
	ours := must(sno.NewGenerator(&sno.Snapshot{Partition: sno.Partition{1, 2}},
		sno.Options{Clock: func() uint64 { return clock }}))
	var last sno.ID
	for range 10 {
		last = must(ours.Next(t.Context())).WithMeta(9)
	}
	var s peer.GeneratorSnapshot
	if err := json.Unmarshal(must(json.Marshal(ours.Snapshot())), &s); err != nil {
		t.Fatal(err)
	}
	check(t, "sequence", s.Sequence, 9)
	theirs := must(peer.NewGenerator(&s, nil))
	id := theirs.New(9) // earlier than ours
	check(t, "tick-tock bits", last[4]&1, id[4]&1^1)
	if !bytes.Equal(last[5:8], id[5:8]) {
		t.Errorf("%x after %x", id, last)
	}
}
