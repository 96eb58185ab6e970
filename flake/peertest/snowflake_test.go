package peertest

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	theirs "github.com/bwmarrin/snowflake"

	ours "github.com/flake-go/flake/flake/snowflake"
)

// split sets the numbers of bits of bwmarrin/snowflake, which are global, and returns our layout with
// the same numbers. In bwmarrin/snowflake, the time has all remaining bits.
func split(t *testing.T, worker, sequence uint8, epoch int64) ours.Layout {
	t.Helper()
	theirs.NodeBits, theirs.StepBits, theirs.Epoch = worker, sequence, epoch
	l := ours.Layout{Time: min(46, 63-worker-sequence), Worker: worker, Sequence: sequence, Epoch: uint64(epoch)}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Both libraries decode an id alike, and Make reverses Decompose. The test uses a million ids from
// both libraries, in all splits, including the first and the last id of each split.
func TestSnowflake(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	read := 0
	for worker := range uint8(23) {
		for sequence := range 23 - worker {
			epoch := rng.Int64N(1_700_000_000_000)
			l := split(t, worker, sequence, epoch)
			machine := ours.Machine(rng.IntN(1 << worker))
			node, err := theirs.NewNode(int64(machine))
			if err != nil {
				t.Fatal(err)
			}
			compare := func(id theirs.ID) {
				read++
				p, err := l.Decompose(ours.ID(id))
				if err != nil || id.Time() != int64(p.Milli) || id.Node() != int64(p.Machine) || id.Step() != int64(p.Sequence) {
					t.Fatalf("%+v: they decode %d as %d, %d, %d, and we as %+v, %v",
						l, id, id.Time(), id.Node(), id.Step(), p, err)
				}
				if back, err := l.Make(p.Milli, p.Machine, p.Sequence); back != ours.ID(id) || err != nil {
					t.Fatalf("%+v: %d round-trips to %v, %v", l, id, back, err)
				}
			}
			g, err := l.NewGenerator(machine, ours.Options{RandomStart: rng.IntN(2) == 0})
			if err != nil {
				t.Fatal(err)
			}
			mine := make([]ours.ID, min(1000, 1<<sequence))
			if _, err := g.NextN(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			for _, id := range mine {
				compare(theirs.ID(id))
				if now := node.Generate(); now.Node() == int64(machine) {
					compare(now)
				} else {
					t.Fatalf("%+v: %d has node %d", l, now, now.Node())
				}
			}
			for _, milli := range []uint64{l.Epoch, uint64(l.Last().UnixMilli())} {
				for _, machine := range []ours.Machine{0, 1<<worker - 1} {
					for _, step := range []uint32{0, 1<<sequence - 1} {
						id, err := l.Make(milli, machine, step)
						if err != nil {
							t.Fatal(err)
						}
						compare(theirs.ID(id))
					}
				}
			}
			for range 3000 {
				compare(theirs.ID(rng.Int64() >> (63 - l.Time - worker - sequence)))
			}
		}
	}
	if read < 1_000_000 {
		t.Errorf("compared only %d ids", read)
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
			"base64":  {mine.Base64(), id.Base64()},
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
