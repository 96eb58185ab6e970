package flake

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// handClock is a clock that is set by hand.
type handClock struct{ milli uint64 }

func (c *handClock) now() uint64 { return c.milli }

func newGenerator(t testing.TB, clock func() uint64) *Generator {
	t.Helper()
	g, err := NewGenerator(0x020000000001, Options{Clock: clock})
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

func TestNextCountsFromZero(t *testing.T) {
	clock := &handClock{}
	g := newGenerator(t, clock.now)
	for _, milli := range []uint64{0, 1, 1_700_000_000_000, tick.MaxLast} {
		clock.milli = milli
		for sequence := range uint16(3) {
			if id := next(t, g); id != Make(milli, g.Worker(), sequence) {
				t.Errorf("at %d: %x, want sequence %d", milli, id, sequence)
			}
		}
	}
}

func TestNextWaitsForTheNextMillisecond(t *testing.T) {
	reads := 0
	g := newGenerator(t, func() uint64 { // a millisecond takes 70,000 reads
		reads++
		return uint64(1000 + reads/70_000)
	})
	last := next(t, g)
	for range 3 * perMilli {
		id := next(t, g)
		if id.Compare(last) <= 0 {
			t.Fatalf("%v after %v", id, last)
		}
		if now := uint64(1000 + reads/70_000); id.Milli() > now {
			t.Fatalf("%v is ahead of the clock, %d", id, now)
		}
		last = id
	}
}

func TestNextNTakesWholeRanges(t *testing.T) {
	reads := 0
	g := newGenerator(t, func() uint64 {
		reads++
		return uint64(1000 + reads/10)
	})
	ids := make([]ID, 3*perMilli+5)
	if n, err := g.NextN(t.Context(), ids); n != len(ids) || err != nil {
		t.Fatal(n, err)
	}
	if !slices.IsSortedFunc(ids, ID.Compare) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("the ids do not increase")
	}
	if ids[perMilli-1].Sequence() != 65535 || ids[perMilli].Sequence() != 0 || ids[perMilli].Milli() <= ids[0].Milli() {
		t.Errorf("a millisecond ends with %x, the next begins with %x", ids[perMilli-1], ids[perMilli])
	}
	if n, err := g.NextN(t.Context(), nil); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestClockBackwards(t *testing.T) {
	clock := &handClock{1000}
	g := newGenerator(t, clock.now)
	before := next(t, g)
	clock.milli = 999
	if id, err := g.Next(t.Context()); !errors.Is(err, ErrClockBackwards) || id != (ID{}) {
		t.Errorf("%v, %v", id, err)
	}
	clock.milli = 1000
	if after := next(t, g); after != Make(1000, g.Worker(), 1) || after.Compare(before) <= 0 {
		t.Errorf("once it has caught up: %v", after)
	}
}

func TestNextNTellsHowFarItCame(t *testing.T) {
	reads := 0
	g := newGenerator(t, func() uint64 {
		if reads++; reads > 1 {
			return 999
		}
		return 1000
	})
	ids := make([]ID, perMilli+10)
	n, err := g.NextN(t.Context(), ids)
	if n != perMilli || !errors.Is(err, ErrClockBackwards) || ids[n-1] != Make(1000, g.Worker(), 65535) {
		t.Errorf("%d ids, %v", n, err)
	}
}

// A clock read before another caller took a later millisecond has not gone
// back.
func TestOldReadingIsNotBackwards(t *testing.T) {
	var g *Generator
	clock, held := &handClock{1000}, true
	g = newGenerator(t, func() uint64 {
		now := clock.milli
		if held { // the reader is held up, another comes by
			held = false
			clock.milli = 1001
			next(t, g)
		}
		return now
	})
	if id := next(t, g); id != Make(1001, g.Worker(), 1) {
		t.Errorf("%x", id)
	}
}

func TestNextContextGivesUp(t *testing.T) {
	clock := &handClock{1000}
	g := newGenerator(t, clock.now)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	ids := make([]ID, perMilli+1)
	if n, err := g.NextN(ctx, ids); n != perMilli || !errors.Is(err, why) {
		t.Errorf("%d, %v", n, err)
	}
	clock.milli++
	if n, err := g.NextN(ctx, ids[:1]); n != 1 || err != nil {
		t.Errorf("gave up without a wait: %d, %v", n, err)
	}
}

// CatchUp waits for the clock, and Close ends a generator without a file too.
func TestCatchUpAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, behind := time.Now(), uint64(0)
		g := newGenerator(t, func() uint64 { return 1000 + uint64(time.Since(start).Milliseconds()) - behind })
		before := next(t, g)
		behind = 500
		if err := g.CatchUp(t.Context()); err != nil || time.Since(start) < 500*time.Millisecond || next(t, g).Compare(before) <= 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		last, sequence := g.Last()
		if err := errors.Join(g.Close(), g.Close()); err != nil {
			t.Error(err)
		}
		if id, err := g.Next(t.Context()); !errors.Is(err, ErrClosed) || !errors.Is(g.Ready(), ErrClosed) {
			t.Errorf("closed: %v, %v, %v", id, err, g.Ready())
		}
		if at, of := g.Last(); at != last || of != sequence {
			t.Errorf("closed, the last is %d:%d", at, of)
		}
	})
}

func TestGeneratorRefusesWhatDoesNotFit(t *testing.T) {
	if _, err := NewGenerator(MaxWorker+1, Options{}); err == nil {
		t.Error("a worker of 49 bits is taken")
	}
	if g, err := NewGenerator(MaxWorker, Options{}); err != nil || g.Worker() != MaxWorker {
		t.Errorf("the highest worker: %v", err)
	}
	for _, milli := range []uint64{tick.MaxLast + 1, 1<<64 - 1} {
		clock := &handClock{milli}
		g := newGenerator(t, clock.now)
		if id, err := g.Next(t.Context()); err == nil {
			t.Errorf("at %d: %v", milli, id)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	g := newGenerator(t, nil)
	ids, text := make([]ID, 16), make([]byte, 0, 128)
	id := next(t, g)
	short, _ := id.Text(62)
	for name, f := range map[string]func(){
		"Next":       func() { g.Next(t.Context()) },
		"NextN":      func() { g.NextN(t.Context(), ids) },
		"Reserve":    func() { g.Reserve(context.Background(), 16) },
		"AppendText": func() { id.AppendText(text) },
		"AppendBase": func() { id.AppendBase(text, 62) },
		"ParseBase":  func() { ParseBase(short, 62) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestReserve(t *testing.T) {
	clock := &handClock{1000}
	g := newGenerator(t, clock.now)
	next(t, g)
	for _, c := range []struct{ n, first, count int }{{1, 1, 1}, {10, 2, 10}, {1 << 20, 12, perMilli - 12}} {
		run, err := g.Reserve(t.Context(), c.n)
		if run.First != Make(1000, g.Worker(), uint16(c.first)) || run.Count != c.count || err != nil {
			t.Errorf("%d ids: %+v, %v", c.n, run, err)
		}
		if last := run.At(run.Count - 1); last != Make(1000, g.Worker(), uint16(c.first+c.count-1)) {
			t.Errorf("%d ids end with %x", c.n, last)
		}
	}
	if g.Waits() != 0 {
		t.Errorf("%d waits", g.Waits())
	}
	for _, n := range []int{0, -1} {
		if run, err := g.Reserve(t.Context(), n); err == nil {
			t.Errorf("%d ids: %+v", n, run)
		}
	}
}

// Times beyond all ids count as the last that an id tells, and a zero value has
// no ids.
func TestFarTimes(t *testing.T) {
	const last = math.MaxInt64
	far, before := time.Unix(1<<63-62135596801, 999_999_999), time.Unix(math.MinInt64, 0)
	if id := Notional(far); id != Make(last, 0, 0) {
		t.Errorf("%x", id)
	}
	if lowest, highest := Span(before, far); lowest != (ID{}) || highest != Make(last, MaxWorker, 1<<16-1) {
		t.Errorf("%x to %x", lowest, highest)
	}
}

func TestZeroGenerator(t *testing.T) {
	var g Generator
	id, err := g.Next(t.Context())
	n, errN := g.NextN(t.Context(), make([]ID, 2))
	run, errRun := g.Reserve(t.Context(), 2)
	if id != (ID{}) || n != 0 || run.Count != 0 || err == nil || errN == nil || errRun == nil || g.Ready() == nil {
		t.Errorf("%v, %v; %d, %v; %v, %v", id, err, n, errN, run, errRun)
	}
	if milli, sequence := g.Last(); milli != 0 || sequence != 0 || g.Waits() != 0 || g.Behind() != 0 || g.Worker() != 0 || g.PerTick() != 0 {
		t.Errorf("the last is %d:%d", milli, sequence)
	}
	at, errSaved := g.LastSaved()
	if err := errors.Join(errSaved, g.CatchUp(t.Context()), g.Close(), g.Close()); err != nil || !g.Mark().IsZero() || !at.IsZero() {
		t.Errorf("%v, the mark at %v, saved at %v", err, g.Mark(), at)
	}
}
