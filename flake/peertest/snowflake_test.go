package peertest

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	theirs "github.com/bwmarrin/snowflake"

	ours "github.com/flake-go/flake/flake/snowflake"
)

// split sets theirs, which are global, to a split of the 22 bits, and returns the
// layout that is ours.
func split(t *testing.T, worker uint8, epoch int64) ours.Layout {
	t.Helper()
	theirs.NodeBits, theirs.StepBits, theirs.Epoch = worker, 22-worker, epoch
	l := ours.Twitter
	l.Worker, l.Sequence, l.Epoch = worker, 22-worker, uint64(epoch)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Ids that they make come apart as they say, and go together again; ids that we
// make come apart so for them.
func TestSnowflake(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for worker := uint8(6); worker <= 22; worker++ {
		for range 20 {
			l := split(t, worker, rng.Int64N(1_700_000_000_000))
			machine := ours.Machine(rng.IntN(1 << worker))
			node, err := theirs.NewNode(int64(machine))
			if err != nil {
				t.Fatal(err)
			}
			id := node.Generate()
			want := ours.Parts{Milli: uint64(id.Time()), Machine: machine, Worker: int(machine), Sequence: uint16(id.Step())}
			if got := l.Decompose(ours.ID(id)); got != want || id.Node() != int64(machine) {
				t.Fatalf("%+v: %d comes apart as %+v, want %+v", l, id, got, want)
			}
			if back, err := l.Make(want.Milli, machine, want.Sequence); back != ours.ID(id) || err != nil {
				t.Fatalf("%+v: %d comes back as %v, %v", l, id, back, err)
			}
			g, err := l.NewGenerator(machine, ours.Options{RandomStart: true})
			if err != nil {
				t.Fatal(err)
			}
			mine, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			parts, same := l.Decompose(mine), theirs.ID(mine)
			if same.Time() != int64(parts.Milli) || same.Node() != int64(machine) || same.Step() != int64(parts.Sequence) {
				t.Fatalf("%+v: %v comes apart for them as %d, %d, %d, for us as %+v", l, mine, same.Time(), same.Node(), same.Step(), parts)
			}
		}
	}
}

func TestSnowflakeTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 1000 {
		id := theirs.ID(rng.Int64() >> (i % 63))
		mine := ours.ID(id)
		two, err := mine.Text(2)
		if err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2]string{
			"decimal": {mine.String(), id.String()},
			"base 2":  {two, id.Base2()},
			"base 32": {ours.Base32.Text(mine), id.Base32()},
			"base 36": {ours.Base36.Text(mine), id.Base36()},
			"base 58": {ours.Base58.Text(mine), id.Base58()},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%d in %s: %q, want %q", id, name, pair[0], pair[1])
			}
		}
		a, err1 := json.Marshal(mine)
		b, err2 := json.Marshal(id)
		if string(a) != string(b) || err1 != nil || err2 != nil {
			t.Errorf("%d in JSON: %s, %v, want %s, %v", id, a, err1, b, err2)
		}
		if mine.Bytes() != id.IntBytes() {
			t.Errorf("%d in bytes: %x, want %x", id, mine.Bytes(), id.IntBytes())
		}
	}
}
