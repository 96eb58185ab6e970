package peertest

import (
	"math/rand/v2"
	"strings"
	"testing"

	theirs "github.com/oklog/ulid/v2"

	"github.com/flake-go/flake/flake/ulid"
)

func ourULIDs(t *testing.T) []ulid.ID {
	g, err := ulid.NewGenerator(someWorker, ulid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ourIDs(t, g, ulid.Make, ulid.MaxMilli, 1<<16-1, 1<<16-1)
}

// oklog/ulid's ParseStrict, Scan and UnmarshalBinary read our ids.
func TestULIDOfOurs(t *testing.T) {
	ids := ourULIDs(t)
	for i, id := range ids {
		text := id.String()
		same, err := theirs.ParseStrict(text)
		if err != nil || same != theirs.ULID(id) || same.String() != text || same.Time() != id.Milli() {
			t.Fatalf("they read %v as %v with time %d, %v", id, same, same.Time(), err)
		}
		if lower, err := theirs.ParseStrict(strings.ToLower(text)); lower != same || err != nil {
			t.Fatalf("they read %v in lower case as %v, %v", id, lower, err)
		}
		if i > 0 && same.Compare(theirs.ULID(ids[i-1])) != id.Compare(ids[i-1]) ||
			i > 16 && same.Compare(theirs.ULID(ids[i-1])) <= 0 {
			t.Fatalf("%v after %v", id, ids[i-1])
		}
		value, err := id.Value()
		var scanned theirs.ULID
		if err != nil || scanned.Scan(value) != nil || scanned != same {
			t.Fatalf("they scan %v as %v", id, scanned)
		}
		if data, err := id.MarshalBinary(); err != nil || scanned.UnmarshalBinary(data) != nil || scanned != same {
			t.Fatalf("they read the bytes of %v as %v", id, scanned)
		}
	}
	t.Logf("oklog/ulid read %d of our ids", len(ids))
}

// We read the ids of oklog/ulid, and Make reproduces them from their parts.
func TestULIDOfTheirs(t *testing.T) {
	read := func(same theirs.ULID) {
		id, err := ulid.Parse(same.String())
		if err != nil || id != ulid.ID(same) || id.String() != same.String() || id.Milli() != same.Time() {
			t.Fatalf("we read %v as %v with time %d, %v", same, id, id.Milli(), err)
		}
		again, err := ulid.Make(id.Milli(), id.Worker(), id.Sequence(), id.Random())
		if again != id || err != nil {
			t.Fatalf("%v round-trips to %v, %v", id, again, err)
		}
		value, err := same.Value()
		if err != nil || again.Scan(value) != nil || again != id {
			t.Fatalf("we scan %v as %v", same, again)
		}
	}
	if theirs.MaxTime() != ulid.MaxMilli {
		t.Errorf("their latest time is %d, ours %d", theirs.MaxTime(), int64(ulid.MaxMilli))
	}
	read(theirs.Zero)
	read(theirs.MustParseStrict("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"))
	for range *peerIDs {
		read(theirs.Make())
	}
}

// We reject the strings that oklog/ulid's ParseStrict rejects, and read the others as it does.
func TestULIDTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	read := 0
	for range *peerIDs {
		text := []byte(ulid.New().String())
		for range rng.IntN(3) {
			text[rng.IntN(len(text))] = byte(rng.IntN(128))
		}
		if rng.IntN(4) == 0 {
			text[0] = "78"[rng.IntN(2)]
		}
		same, errTheirs := theirs.ParseStrict(string(text))
		id, err := ulid.Parse(string(text))
		if (err == nil) != (errTheirs == nil) || err == nil && id != ulid.ID(same) {
			t.Fatalf("we read %q as %v, %v, they as %v, %v", text, id, err, same, errTheirs)
		}
		if err == nil {
			read++
		}
	}
	if read < *peerIDs/4 || read > *peerIDs*3/4 {
		t.Errorf("%d of %d strings were valid, want a quarter to three quarters", read, *peerIDs)
	}
}
