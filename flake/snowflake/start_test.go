package snowflake

import (
	"errors"
	"testing"
)

// From a random start a millisecond has every sequence once, whether they are
// taken one by one or several at a time; and the starts spread.
func TestRandomStart(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Twitter, 1, Options{RandomStart: true, Clock: clock.now})
	starts := map[uint32]bool{}
	for range 100 {
		seen := map[ID]bool{}
		for i := 0; i < 4096; {
			ids := make([]ID, min(1+i%1000, 4096-i))
			var err error
			if i%3 == 0 {
				ids = ids[:1]
				ids[0], err = g.TryNext()
			} else {
				_, err = g.NextN(t.Context(), ids)
			}
			if err != nil {
				t.Fatalf("%d ids: %v", len(ids), err)
			}
			if i == 0 {
				starts[Twitter.Decompose(ids[0]).Sequence] = true
			}
			for n, id := range ids {
				if p := Twitter.Decompose(id); seen[id] || p.Milli != clock.milli || p.Machine != 1 {
					t.Fatalf("id %d is %+v", i+n, p)
				}
				seen[id] = true
			}
			i += len(ids)
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

// A run ends with the highest sequence, and what is left of it is given up.
func TestRandomStartOfRuns(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Twitter, 1, Options{RandomStart: true, Clock: clock.now})
	for ; clock.milli < someTime+10; clock.milli++ {
		first, err1 := g.Reserve(t.Context(), 1)
		rest, err2 := g.Reserve(t.Context(), 4096)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		p, start := Twitter.Decompose(rest.First), Twitter.Decompose(first.First).Sequence
		last, want := Twitter.Decompose(rest.At(rest.Count-1)), min(4096-p.Sequence, 4095)
		if p.Sequence != (start+1)%4096 || rest.Count != int(want) || last.Sequence != p.Sequence+want-1 ||
			last.Milli != clock.milli || last.Machine != 1 {
			t.Errorf("from %d on, then %d ids from %+v to %+v", start, rest.Count, p, last)
		}
		if id, err := g.TryNext(); !errors.Is(err, ErrSequence) {
			t.Errorf("%v, %v", id, err)
		}
	}
}

// The first number of splitmix64 with the seed 0, as published.
func TestStartIsSplitmix64(t *testing.T) {
	g := &Generator{key: 0x9e3779b97f4a7c15}
	if got := g.start(0); got != 0xe220a8397b1dcdaf {
		t.Errorf("%#x", got)
	}
}
