package snowflake

import (
	"errors"
	"testing"
)

// From a random start a millisecond has every sequence once, whether they are
// taken one by one or in runs; and the starts spread.
func TestRandomStart(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Twitter, 1, Options{RandomStart: true, Clock: clock.now})
	starts := map[uint32]bool{}
	for range 100 {
		seen := map[ID]bool{}
		for i := 0; i < 4096; {
			run := Run{Count: 1}
			var err error
			if i%3 == 0 {
				run.First, err = g.TryNext()
			} else {
				run, err = g.Reserve(t.Context(), 1+i%1000)
			}
			if err != nil || run.Count < 1 {
				t.Fatalf("%d ids: %v", run.Count, err)
			}
			if i == 0 {
				starts[Twitter.Decompose(run.First).Sequence] = true
			}
			for n := range run.Count {
				id := run.First
				if n > 0 {
					id = run.At(n)
				}
				if p := Twitter.Decompose(id); seen[id] || p.Milli != clock.milli || p.Machine != 1 {
					t.Fatalf("id %d is %+v", i+n, p)
				}
				seen[id] = true
			}
			i += run.Count
		}
		if milli, sequence := g.Last(); milli != clock.milli || sequence != uint32(4095+g.start(milli))&0xfff {
			t.Fatalf("the last is %d:%d", milli, sequence)
		}
		if id, err := g.TryNext(); !errors.Is(err, ErrSequence) {
			t.Fatalf("%v, %v", id, err)
		}
		clock.milli++
	}
	if len(starts) < 90 || g.key <= 1 {
		t.Errorf("100 milliseconds have %d starts", len(starts))
	}
}

// The first number of splitmix64 with the seed 0, as published.
func TestStartIsSplitmix64(t *testing.T) {
	g := &Generator{key: 0x9e3779b97f4a7c15}
	if got := g.start(0); got != 0xe220a8397b1dcdaf {
		t.Errorf("%#x", got)
	}
}
