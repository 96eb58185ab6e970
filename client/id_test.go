package client

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
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

func bytesOf[ID Format](id ID) []byte {
	b, _ := binary.Append(nil, binary.BigEndian, id) // never fails
	return b
}

// An id has the bytes that a node sends.
func testBytes[ID Format](t *testing.T, sent []byte, want ID) {
	t.Helper()
	n, err := numberIn(sent, formatOf[ID]())
	if id := idOf[ID](n); id != want || err != nil || numberOf(id) != n || !bytes.Equal(bytesOf(id), sent) {
		t.Errorf("%x is %v, %v, and round-trips to %x", sent, id, err, bytesOf(id))
	}
	for _, other := range [][]byte{nil, sent[1:], append(sent, 0)} {
		if n, err := numberIn(other, formatOf[ID]()); err == nil {
			t.Errorf("%x is taken for %v", other, n)
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
		format *formats.Format
		id     formats.Number
		random uint64
	}{
		{"uuidv7", uuidFormat, numberOf(uuid), 1<<14 - 1},
		{"uuidv7, taken for a ulid", ulidFormat, numberOf(uuid), 1<<14 - 1},
		{"ulid", ulidFormat, numberOf(plain), 1<<16 - 1},
		{"ulid, like a uuidv7", ulidFormat, numberOf(alike), 1<<14 - 1},
		{"ulid, like a uuidv7 of another variant", ulidFormat, numberOf(other), 1<<16 - 1},
		{"flake", flakeFormat, numberOf(flake.Make(milli, worker, 7)), 0},
		{"sno", snoFormat, formats.Number{Hi: 1 << 8, Lo: 1}, 0},
		{"snowflake", snowflakeFormat, formats.Number{Lo: 1 << 40}, 0},
	} {
		first := tt.id.AppendOctets(nil, tt.format.Size)
		runs, err := runsOf(nil, request{n: 1, format: tt.format}, answer{runs: []run{{first, 1}}})
		if err != nil {
			t.Fatal(err)
		}
		var changed formats.Number
		for range 200 {
			id := runs[0].At(0)
			changed.Hi |= id.Hi ^ tt.id.Hi
			changed.Lo |= id.Lo ^ tt.id.Lo
		}
		if changed != (formats.Number{Lo: tt.random}) {
			t.Errorf("%s: the random bits are %x, want %x", tt.what, changed, tt.random)
		}
	}
}
