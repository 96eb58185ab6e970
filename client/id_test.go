package client

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

func TestRun(t *testing.T) {
	low := Run[snowflake.ID]{254, 4}
	want := []snowflake.ID{254, 255, 256, 257}
	if got := slices.Collect(low.All()); !slices.Equal(got, want) {
		t.Error(got)
	}
	for i := range want {
		if got := low.At(i); got != want[i] {
			t.Errorf("%d: %v, want %v", i, got, want[i])
		}
	}
	carry := Run[sno.ID]{sno.ID{1: 9, 2: 255, 3: 255, 4: 255, 5: 255, 6: 255, 7: 255, 8: 255, 9: 255}, 2}
	if got := carry.At(1); got != (sno.ID{1: 10}) {
		t.Error(got)
	}
	second := Run[flake.ID]{flake.ID{7: 1}, 2}
	if got := second.At(1); got != (flake.ID{7: 1, 15: 1}) {
		t.Error(got)
	}
	for range low.All() {
		break
	}
	u := Run[uuidv7.ID]{uuidv7.ID{1, 2, 3, 4, 5, 6, 0x70, 255, 0x80, 15: 9}, 2}
	if got := u.At(1); got != (uuidv7.ID{1, 2, 3, 4, 5, 6, 0x71, 0, 0x80, 15: 9}) {
		t.Error(got)
	}
	l := Run[ulid.ID]{ulid.ID{1, 2, 3, 4, 5, 6, 7, 255, 15: 255}, 2}
	if got := slices.Collect(l.All()); !slices.Equal(got, []ulid.ID{l.First, {1, 2, 3, 4, 5, 6, 8, 0, 15: 255}}) {
		t.Error(got)
	}
}

func TestBelow(t *testing.T) {
	ascending := []number{{0, 0}, {0, 1}, {0, math.MaxUint64}, {1, 0}, {1, 1}}
	for i, n := range ascending {
		for j, m := range ascending {
			if n.below(m) != (i < j) {
				t.Errorf("%v.below(%v) is %v", n, m, n.below(m))
			}
		}
	}
}

func bytesOf[ID Format](id ID) []byte {
	b, _ := binary.Append(nil, binary.BigEndian, id) // never fails
	return b
}

// An id has the bytes that a node sends.
func testBytes[ID Format](t *testing.T, sent []byte, want ID) {
	t.Helper()
	id, err := fromBytes[ID](sent)
	if back := bytesOf(id); id != want || err != nil || !bytes.Equal(back, sent) {
		t.Errorf("%x is %v, %v, and round-trips to %x", sent, id, err, back)
	}
	for _, other := range [][]byte{nil, sent[1:], append(sent, 0)} {
		if id, err := fromBytes[ID](other); err == nil {
			t.Errorf("%x is taken for %v", other, id)
		}
	}
}

func TestBytes(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	testBytes(t, b, flake.ID(b))
	testBytes(t, b, uuidv7.ID(b))
	testBytes(t, b, ulid.ID(b))
	testBytes(t, b[:10], sno.ID(b))
	testBytes(t, b[:8], snowflake.FromBytes([8]byte(b)))
}

// The formats of ids of 16 bytes differ in the first two bytes, and in version and variant.
func TestFormats(t *testing.T) {
	mine := flake.Make(1_795_260_280_557, 1<<47, 7)
	uuid, err := uuidv7.Make(1_795_260_280_557, 1<<47, 7, 9)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ulid.Make(1_795_260_280_557, 1<<47, 7, 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		id                       [16]byte
		isFlake, isUUID, maybeUL bool
	}{
		{mine, true, false, false},
		{flake.Make(7<<12, 1<<47, 7), true, false, false}, // like a uuidv7 of 1970
		{uuid, false, true, true},                         // a ulid may have any bits after the time
		{other, false, false, true},
	} {
		_, _, err1 := handedOut[flake.ID](tt.id[:])
		_, _, err2 := handedOut[uuidv7.ID](tt.id[:])
		_, _, err3 := handedOut[ulid.ID](tt.id[:])
		if (err1 == nil) != tt.isFlake || (err2 == nil) != tt.isUUID || (err3 == nil) != tt.maybeUL {
			t.Errorf("%x: %v, %v, %v", tt.id, err1, err2, err3)
		}
	}
}

// Only the random bits of a leased id are changed, not those of the worker above them.
func TestFresh(t *testing.T) {
	const milli, worker = 1_795_260_280_557, 1 << 47 // in a ulid, the worker begins like the variant of a UUID
	uuid, err1 := uuidv7.Make(milli, worker, 7, 9)
	plain, err2 := ulid.Make(milli, worker, 7, 9)
	alike, err3 := ulid.Make(milli, worker, 7<<12, 9)
	other, err4 := ulid.Make(milli, 1, 7<<12, 9)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		t.Fatal(err1, err2, err3, err4)
	}
	for _, tt := range []struct {
		what   string
		id     number
		random uint64
	}{
		{"uuidv7", numberOf(uuid), 1<<14 - 1},
		{"uuidv7, taken for a ulid", numberOf(ulid.ID(uuid)), 1<<14 - 1},
		{"ulid", numberOf(plain), 1<<16 - 1},
		{"ulid, like a uuidv7", numberOf(alike), 1<<14 - 1},
		{"ulid, like a uuidv7 of another variant", numberOf(other), 1<<16 - 1},
		{"flake", numberOf(flake.Make(milli, worker, 7)), 0},
		{"sno", number{1 << 8, 1}, 0},
		{"snowflake", number{0, 1 << 40}, 0},
	} {
		var changed number
		for range 200 {
			id := tt.id.fresh()
			changed.hi |= id.hi ^ tt.id.hi
			changed.lo |= id.lo ^ tt.id.lo
		}
		if changed != (number{lo: tt.random}) {
			t.Errorf("%s: the random bits are %x, want %x", tt.what, changed, tt.random)
		}
	}
}
