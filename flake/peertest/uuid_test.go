package peertest

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	theirs "github.com/google/uuid"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/uuidv7"
)

var peerIDs = flag.Int("peer.ids", 100_000, "how many ids of each library the other library reads")

// someWorker has its highest and its lowest bit set.
const someWorker flake.Worker = 0x8200_0000_0001

func ourUUIDs(t *testing.T) []uuidv7.ID {
	g, err := uuidv7.NewGenerator(someWorker, uuidv7.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ourIDs(t, g, uuidv7.Make, uuidv7.MaxMilli, 1<<12-1, 1<<14-1)
}

type generator[ID interface{ Plus(i int) ID }] interface {
	Reserve(ctx context.Context, n int) (flake.RunOf[ID], error)
	NextN(ctx context.Context, dst []ID) (int, error)
}

// ourIDs returns ids with the lowest and the given highest values of all fields, and then ids from
// g's Reserve and NextN.
func ourIDs[ID interface{ Plus(i int) ID }](t *testing.T, g generator[ID],
	parts func(milli uint64, worker flake.Worker, sequence, random uint16) (ID, error),
	milli uint64, sequence, random uint16) (ids []ID) {
	for i := range uint64(1 << 4) {
		id, err := parts(milli*(i&1), flake.MaxWorker*flake.Worker(i>>1&1), sequence*uint16(i>>2&1), random*uint16(i>>3))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for some := make([]ID, 100); len(ids) < *peerIDs; ids = append(ids, some...) {
		run, err := g.Reserve(t.Context(), len(some))
		if err != nil {
			t.Fatal(err)
		}
		for i := range run.Count {
			some[i] = run.At(i)
		}
		if n, err := g.NextN(t.Context(), some[run.Count:]); err != nil {
			t.Fatal(n, err)
		}
	}
	return ids
}

// google/uuid reads our ids as UUIDs of version 7, in every form that both have.
func TestUUIDOfOurs(t *testing.T) {
	ids := ourUUIDs(t)
	var last theirs.UUID
	for i, id := range ids {
		text := id.String()
		same, err := theirs.Parse(text)
		if err != nil || same != theirs.UUID(id) || same.String() != text || same.Version() != 7 ||
			same.Variant() != theirs.RFC4122 {
			t.Fatalf("they read %v as %v, %v: version %v, variant %v", id, same, err, same.Version(), same.Variant())
		}
		if at := same.Time(); timeOf(at) != id.Milli() {
			t.Fatalf("they read the time of %v as %v", id, at)
		}
		if i > 16 && same.String() <= last.String() {
			t.Fatalf("%v after %v", same, last)
		}
		last = same
		value, err := id.Value()
		var scanned theirs.UUID
		if err != nil || scanned.Scan(value) != nil || scanned != same {
			t.Fatalf("they scan %v as %v", id, scanned)
		}
		if data, err := id.MarshalBinary(); err != nil || scanned.UnmarshalBinary(data) != nil || scanned != same {
			t.Fatalf("they read the bytes of %v as %v", id, scanned)
		}
		if i%100 == 0 {
			a, err1 := json.Marshal(id)
			b, err2 := json.Marshal(same)
			if string(a) != string(b) || err1 != nil || err2 != nil {
				t.Fatalf("%s in JSON, want %s", a, b)
			}
		}
	}
	t.Logf("google/uuid read %d of our ids", len(ids))
}

// timeOf returns a UUID's time, which counts from 1582, in ms since 1970.
func timeOf(at theirs.Time) uint64 {
	s, ns := at.UnixTime()
	return uint64(time.Unix(s, ns).UnixMilli())
}

// We read the ids of google/uuid, and Make reproduces them from their parts.
func TestUUIDOfTheirs(t *testing.T) {
	for range *peerIDs {
		same, err := theirs.NewV7()
		if err != nil {
			t.Fatal(err)
		}
		id, err := uuidv7.Parse(same.String())
		if err != nil || id != uuidv7.ID(same) || id.String() != same.String() || id.Milli() != timeOf(same.Time()) {
			t.Fatalf("we read %v as %v with time %d, %v", same, id, id.Milli(), err)
		}
		again, err := uuidv7.Make(id.Milli(), id.Worker(), id.Sequence(), id.Random())
		if again != id || err != nil {
			t.Fatalf("%v round-trips to %v, %v", id, again, err)
		}
		value, err := same.Value()
		if err != nil || again.Scan(value) != nil || again != id {
			t.Fatalf("we scan %v as %v", same, again)
		}
	}
	for range 100 {
		if id, err := uuidv7.Parse(theirs.NewString()); err == nil {
			t.Fatalf("a random UUID is read as %v", id)
		}
	}
}

// We read exactly the strings that google/uuid reads as UUIDs of version 7, and as the same ids.
func TestUUIDTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	read := 0
	for range *peerIDs {
		text := []byte(uuidv7.New().String())
		for range rng.IntN(3) {
			text[rng.IntN(len(text))] = "0123456789abcdefABCDEFgG-{ \x00"[rng.IntN(28)]
		}
		same, errTheirs := theirs.Parse(string(text))
		id, err := uuidv7.Parse(string(text))
		want := errTheirs == nil && same.Version() == 7 && same.Variant() == theirs.RFC4122
		if (err == nil) != want || want && id != uuidv7.ID(same) {
			t.Fatalf("we read %q as %v, %v, they as %v, %v", text, id, err, same, errTheirs)
		}
		if want {
			read++
		}
	}
	if read < *peerIDs/4 || read > *peerIDs*3/4 {
		t.Errorf("%d of %d strings were valid, want a quarter to three quarters", read, *peerIDs)
	}
}
