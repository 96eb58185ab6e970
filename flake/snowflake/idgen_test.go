package snowflake

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/internal/testenv"
)

// testCase describes a generator: flake-idgen's options, and the time of each call.
type testCase struct {
	Options map[string]int64 `json:"options"`
	Times   []uint64         `json:"times"`
}

type outcome struct {
	Hex, Number, Decimal, Binary, Error string
}

// newCase chooses random options, and times that advance, stand still, go back, and stand still
// for more calls than a millisecond has ids.
func newCase(rng *rand.Rand) testCase {
	options := map[string]int64{}
	switch rng.IntN(4) {
	case 0:
		options["id"] = rng.Int64N(1024)
	case 1:
		options["datacenter"] = rng.Int64N(32)
		options["worker"] = rng.Int64N(32)
	case 2:
		options[[]string{"datacenter", "worker"}[rng.IntN(2)]] = rng.Int64N(32)
	}
	if rng.IntN(2) == 0 {
		options["epoch"] = rng.Int64N(1 << 41)
	}
	if rng.IntN(2) == 0 {
		options["seqMask"] = rng.Int64N(1 << (1 + rng.IntN(12)))
	}
	epoch := uint64(options["epoch"])
	last := epoch + 1<<42 - 1
	now := epoch + 1 + rng.Uint64N(1<<(1+rng.IntN(41)))
	var times []uint64
	for range 1 + rng.IntN(10) {
		calls := 1 + rng.IntN(6)
		if rng.IntN(100) == 0 {
			calls = 4100
		}
		for range calls {
			times = append(times, now)
		}
		switch rng.IntN(8) {
		case 0:
			now = max(now-1-rng.Uint64N(1<<rng.IntN(20)), epoch+1)
		case 1:
			now += 1 + rng.Uint64N(1<<rng.IntN(41))
		default:
			now += rng.Uint64N(3)
		}
		now = min(max(now, epoch+1), last)
	}
	return testCase{options, times}
}

// machine returns the machine that the options specify.
func (c testCase) machine() (Machine, error) {
	if id, ok := c.Options["id"]; ok {
		return Machine(id), nil
	}
	return Idgen.Machine(int(c.Options["datacenter"]), int(c.Options["worker"]))
}

// With the same options and clock, the real flake-idgen makes the same ids and fails with the same
// error messages.
func TestIdgen(t *testing.T) {
	testenv.Need(t, "node")
	if _, err := os.Stat("testdata/idgen/node_modules/flake-idgen"); err != nil {
		testenv.Missing(t, err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	cases := make([]testCase, 200)
	for i := range cases {
		cases[i] = newCase(rng)
	}
	// Alone, the random cases would sometimes make too few ids.
	cases[0] = testCase{map[string]int64{}, slices.Repeat([]uint64{someTime}, 4100)}
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "ids.js")
	cmd.Dir, cmd.Stdin = "testdata/idgen", bytes.NewReader(in)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var results []struct {
		ID    Machine   `json:"id"`
		Calls []outcome `json:"calls"`
	}
	if err := json.Unmarshal(out, &results); err != nil || len(results) != len(cases) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	ids, failures := 0, map[string]int{}
	for i, c := range cases {
		clock := &handClock{c.Times[0]}
		l := Idgen
		l.Epoch = uint64(c.Options["epoch"])
		machine, err := c.machine()
		if err != nil || machine != results[i].ID {
			t.Errorf("%v: machine %d, %v, want %d", c.Options, machine, err, results[i].ID)
		}
		g := newTest(t, l, machine, Options{SequenceMask: int(c.Options["seqMask"]), Clock: clock.now})
		for n, want := range results[i].Calls {
			clock.milli = c.Times[n]
			var got outcome
			if id, err := g.TryNext(); err != nil {
				got = outcome{Error: err.Error()}
				failures[strings.Fields(got.Error)[0]]++
			} else {
				short := strings.TrimLeft(id.Hex(), "0")
				got = outcome{id.Hex(), "0x" + short, id.String(), id.Binary(), ""}
				ids++
			}
			for _, text := range []string{want.Hex, want.Number} {
				if id, err := ParseHex(text); want.Error == "" && (err != nil || id.Hex() != want.Hex) {
					t.Fatalf("%q is read as %v, %v", text, id, err)
				}
			}
			if got != want {
				t.Fatalf("%v, call %d at %d: %+v, want %+v", c.Options, n, clock.milli, got, want)
			}
		}
	}
	t.Logf("%d equal ids, and failures %v", ids, failures)
	if ids < 2_000 || failures["Sequence"] < 100 || failures["Clock"] < 100 {
		t.Error("too few ids or failures")
	}
}
