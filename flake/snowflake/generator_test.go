package snowflake

import (
	"context"
	"errors"
	"flag"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/duplicates"
)

const someTime = 1_700_000_000_000

type handClock struct{ milli uint64 }

func (c *handClock) now() uint64 { return c.milli }

func newTest(t testing.TB, l Layout, m Machine, o Options) *Generator {
	t.Helper()
	g, err := l.NewGenerator(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next(t testing.TB, g *Generator) ID {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		l    Layout
		m    Machine
		o    Options
		says string // part of the error; empty if there must be none
	}{
		"nothing given":    {l: Idgen},
		"highest machine":  {l: Idgen, m: 1023},
		"machine too high": {l: Idgen, m: 1024, says: "machine 1024 is out of range: must be 0 to 1023"},
		"highest mask":     {l: Idgen, o: Options{SequenceMask: 0xfff}},
		"mask too high": {l: Idgen, o: Options{SequenceMask: 0x1000},
			says: "seqMask 0x1000 is out of range: must be 0 to 0xfff"},
		"mask below 0":  {l: Idgen, o: Options{SequenceMask: -1}, says: "seqMask -0x1"},
		"no layout":     {says: "0 bits of time"},
		"few bits":      {l: Layout{Time: 41, Worker: 8, Sequence: 4}, m: 255},
		"too many bits": {l: Layout{Time: 41, Worker: 11, Sequence: 12}, says: "at most 22 together"},
		"too many with time": {l: Layout{Time: 43, Worker: 10, Sequence: 12},
			says: "43 bits of time and 22 below it: must be at most 64 together"},
		"too many ids in a ms": {l: Layout{Time: 42, Sequence: 22},
			says: "42 bits of time and 22 of sequence: must be at most 63 together"},
		"time that has ended": {l: Layout{Time: 40, Worker: 10, Sequence: 12},
			says: "40 bits of time end at 2004-11-03T19:53:47.775Z"},
		"epoch is now": {l: Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: someTime}},
		"epoch in the future": {l: Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: someTime + 1},
			says: "Z is ahead of the clock, "},
		"epoch out of range": {l: Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: 1 << 63}, says: "must be at most"},
	} {
		c.o.Clock = func() uint64 { return someTime }
		g, err := c.l.NewGenerator(c.m, c.o)
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err != nil {
			if d, err := c.l.Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), c.m, c.o); err == nil {
				t.Errorf("%s: opened %v", name, d)
			}
			continue
		}
		if p := partsOf(c.l, next(t, g)); p.Machine != c.m || p.Milli != someTime || g.Machine() != c.m ||
			g.Layout() != c.l {
			t.Errorf("%s: %+v, of machine %d", name, p, g.Machine())
		}
	}
}

func TestMachine(t *testing.T) {
	split := Layout{Time: 41, Datacenter: 4, Worker: 6, Sequence: 12}
	for name, c := range map[string]struct {
		l                  Layout
		datacenter, worker int
		want               Machine
		says               string
	}{
		"idgen's example":          {l: Idgen, datacenter: 9, worker: 7, want: 295},
		"highest parts":            {l: Idgen, datacenter: 31, worker: 31, want: 1023},
		"another split":            {l: split, datacenter: 15, worker: 63, want: 1023},
		"no datacenter":            {l: Twitter, worker: 1023, want: 1023},
		"datacenter too high":      {l: Idgen, datacenter: 32, says: "datacenter 32 is out of range: must be 0 to 31"},
		"datacenter below 0":       {l: Idgen, datacenter: -1, says: "datacenter -1"},
		"worker too high":          {l: Idgen, worker: 32, says: "worker 32 is out of range: must be 0 to 31"},
		"worker below 0":           {l: Idgen, worker: math.MinInt, says: "worker -"},
		"a datacenter for Twitter": {l: Twitter, datacenter: 9, worker: 7, says: "one number from 0 to 1023"},
		"no layout":                {says: "0 bits of time"},
	} {
		m, err := c.l.Machine(c.datacenter, c.worker)
		if m != c.want || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d, %v", name, m, err)
		}
	}
}

func TestOverflow(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Idgen, 5, Options{Clock: clock.now})
	for i := range uint32(4096) {
		id, err := g.TryNext()
		if want, _ := Idgen.Make(someTime, 5, i); id != want || err != nil {
			t.Fatalf("id %d is %v, %v, want %v", i, id, err, want)
		}
	}
	for range 2 {
		if id, err := g.TryNext(); !errors.Is(err, ErrSequence) || id != 0 ||
			!strings.HasPrefix(err.Error(), "Sequence exceeded its maximum value.") {
			t.Errorf("id 4097 is %v, %v", id, err)
		}
	}
	clock.milli++
	if id := next(t, g); partsOf(Idgen, id) != (Parts{someTime + 1, 5, 0, 5, 0}) {
		t.Errorf("%+v", partsOf(Idgen, id))
	}
}

func TestNextWaits(t *testing.T) {
	reads := uint64(0)
	g := newTest(t, Twitter, 1, Options{SequenceMask: 3, Clock: func() uint64 { // a millisecond takes 10 reads
		reads++
		return someTime + reads/10
	}})
	last := ID(0)
	for i := range 100 {
		id := next(t, g)
		p := partsOf(Twitter, id)
		if id <= last || p.Sequence > 3 || p.Milli > someTime+reads/10 {
			t.Fatalf("id %d is %+v", i, p)
		}
		last = id
	}
	if g.Waits() == 0 {
		t.Error("no call waited")
	}
}

func TestClockBackwards(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Idgen, 5, Options{Clock: clock.now})
	last := next(t, g)
	clock.milli -= 42
	ids := make([]ID, 3)
	for name, f := range map[string]func() (ID, error){
		"Next":    func() (ID, error) { return g.Next(t.Context()) },
		"TryNext": g.TryNext,
		"NextN":   func() (ID, error) { n, err := g.NextN(t.Context(), ids); return ID(n), err },
	} {
		id, err := f()
		if id != 0 || !errors.Is(err, flake.ErrClockBackwards) ||
			err.Error() != "Clock moved backwards. Refusing to generate id for 42 milliseconds" {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.CatchUp(ctx); !errors.Is(err, context.Canceled) || g.Behind() != 42*time.Millisecond {
		t.Errorf("CatchUp with a canceled context: %v, %v behind", err, g.Behind())
	}
	clock.milli += 42
	if id := next(t, g); id != last+1 {
		t.Errorf("%v after %v", id, last)
	}
	if milli, sequence := g.Last(); milli != someTime || sequence != 1 {
		t.Errorf("the last id is %d:%d", milli, sequence)
	}
}

// As in flake-idgen, a millisecond is used up when the masked sequence is 0, so the bits above the
// mask's lowest 0 have no effect.
func TestSequenceMask(t *testing.T) {
	for mask, want := range map[int]int{0: 4096, 1: 2, 2: 1, 3: 4, 5: 2, 0xff0: 1, 0x7ff: 2048, 0xffe: 1, 0xfef: 16,
		0xfff: 4096} {
		g := newTest(t, Idgen, 1, Options{SequenceMask: mask, Clock: func() uint64 { return someTime }})
		made := 0
		for ; ; made++ {
			id, err := g.TryNext()
			if err != nil {
				break
			}
			if p := partsOf(Idgen, id); int(p.Sequence) != made {
				t.Fatalf("mask %#x: sequence %d after %d ids", mask, p.Sequence, made)
			}
		}
		if made != want {
			t.Errorf("mask %#x: %d ids, want %d", mask, made, want)
		}
	}
}

// A generator continues above the ids of earlier generators with the same file. If Open fails, it
// returns nil.
func TestOpen(t *testing.T) {
	path, clock := filepath.Join(t.TempDir(), "timestamp"), &handClock{someTime}
	var last ID
	for range 2 {
		g, err := Twitter.Open(t.Context(), path, 7, Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		if other, err := Twitter.Open(t.Context(), path, 7, Options{Clock: clock.now}); other != nil || err == nil {
			t.Errorf("opening a file in use returned %v, want nil", other)
		}
		id := next(t, g)
		if err := g.Close(); err != nil || id <= last {
			t.Errorf("%v after %v, %v", id, last, err)
		}
		last = id
		clock.milli++
	}
	clock.milli -= 60_000 // more than Open waits for
	if g, err := Twitter.Open(t.Context(), path, 7, Options{Clock: clock.now}); g != nil ||
		!errors.Is(err, flake.ErrClockBackwards) {
		t.Errorf("with the clock behind the mark: %v, %v", g, err)
	}
}

func TestReserve(t *testing.T) {
	g := newTest(t, Twitter, 3, Options{Clock: func() uint64 { return someTime }})
	for _, c := range []struct {
		n     int
		first uint32
		count int
	}{{1, 0, 1}, {10, 1, 10}, {1 << 20, 11, 4085}} {
		run, err := g.Reserve(t.Context(), c.n)
		first, _ := Twitter.Make(someTime, 3, c.first)
		if run.First != first || run.Count != c.count || run.At(c.count-1) != first+ID(c.count)-1 || err != nil {
			t.Errorf("%d ids: %+v, %v", c.n, run, err)
		}
	}
	if run, err := g.Reserve(t.Context(), 0); err == nil || run.Count != 0 {
		t.Errorf("0 ids: %+v, %v", run, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := g.NextN(ctx, make([]ID, 1)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("NextN with a canceled context: %d, %v", n, err)
	}
}

func TestNoAllocation(t *testing.T) {
	g := newTest(t, Twitter, 1, Options{RandomStart: true})
	text := make([]byte, 0, 64)
	id := next(t, g)
	short := Base58.Text(id)
	for name, f := range map[string]func(){
		"Next":        func() { g.Next(t.Context()) },
		"Base64":      func() { id.AppendBase64(text) },
		"Base58":      func() { Base58.Append(text, id) },
		"ParseBase58": func() { Base58.Parse(short) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// With random starts, a millisecond has every sequence once, whether ids are made one by one or
// several at a time, and the starts differ.
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
				starts[partsOf(Twitter, ids[0]).Sequence] = true
			}
			for n, id := range ids {
				if p := partsOf(Twitter, id); seen[id] || p.Milli != clock.milli || p.Machine != 1 {
					t.Fatalf("id %d is %+v", i+n, p)
				}
				seen[id] = true
			}
			i += len(ids)
		}
		if milli, sequence := g.Last(); milli != clock.milli || sequence != uint32(4095+g.start(milli))&0xfff {
			t.Fatalf("the last id is %d:%d", milli, sequence)
		}
		if id, err := g.TryNext(); !errors.Is(err, ErrSequence) {
			t.Fatalf("%v, %v", id, err)
		}
		clock.milli++
	}
	if len(starts) < 90 || g.key <= 1 {
		t.Errorf("100 milliseconds have %d different starts", len(starts))
	}
}

// A run ends at the highest sequence, and ids that would continue from 0 are lost.
func TestRandomStartOfRuns(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Twitter, 1, Options{RandomStart: true, Clock: clock.now})
	for ; clock.milli < someTime+10; clock.milli++ {
		first, err1 := g.Reserve(t.Context(), 1)
		rest, err2 := g.Reserve(t.Context(), 4096)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		p, start := partsOf(Twitter, rest.First), partsOf(Twitter, first.First).Sequence
		last, want := partsOf(Twitter, rest.At(rest.Count-1)), min(4096-p.Sequence, 4095)
		if p.Sequence != (start+1)%4096 || rest.Count != int(want) || last.Sequence != p.Sequence+want-1 ||
			last.Milli != clock.milli || last.Machine != 1 {
			t.Errorf("after the sequence %d, got %d ids, from %+v to %+v", start, rest.Count, p, last)
		}
		if id, err := g.TryNext(); !errors.Is(err, ErrSequence) {
			t.Errorf("%v, %v", id, err)
		}
	}
}

// With this key, start(0) is the published first number of splitmix64 with the seed 0.
func TestStartIsSplitmix64(t *testing.T) {
	g := &Generator{key: 0x9e3779b97f4a7c15}
	if got := g.start(0); got != 0xe220a8397b1dcdaf {
		t.Errorf("%#x", got)
	}
}

var duplicatesIDs = flag.Int("duplicates.ids", 2_000_000,
	"how many ids to make from 8 goroutines, at 4,096,000 a second")

func TestNoDuplicates(t *testing.T) {
	few, many := Layout{Time: 41, Worker: 4, Sequence: 8, Epoch: Twitter.Epoch},
		Layout{Time: 41, Sequence: 22, Epoch: Twitter.Epoch}
	for name, c := range map[string]struct {
		layout Layout
		random bool
		clock  func() uint64
		ids    int
	}{
		"from 0":                   {Twitter, false, nil, *duplicatesIDs},
		"from a random start":      {Twitter, true, nil, *duplicatesIDs / 10},
		"with a monotonic clock":   {Twitter, false, flake.MonotonicClock(), *duplicatesIDs / 10},
		"with few bits":            {few, false, nil, *duplicatesIDs / 100},
		"many per millisecond":     {many, false, nil, *duplicatesIDs / 10},
		"many from a random start": {many, true, nil, *duplicatesIDs / 10},
	} {
		t.Run(name, func(t *testing.T) {
			duplicates.Check(t, c.ids, newTest(t, c.layout, 0, Options{RandomStart: c.random, Clock: c.clock}),
				func(id ID) uint64 {
					p := partsOf(c.layout, id)
					return p.Milli<<c.layout.Sequence | uint64(p.Sequence)
				},
				func(id, last ID) bool {
					return (id > last || c.random) && id>>c.layout.low() >= last>>c.layout.low()
				})
		})
	}
}
