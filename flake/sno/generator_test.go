package sno

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/duplicates"
)

const someTime = 1_700_000_000_000

type handClock struct{ milli, reads atomic.Uint64 }

func newClock() *handClock {
	c := &handClock{}
	c.milli.Store(someTime)
	return c
}

func (c *handClock) now() uint64 {
	c.reads.Add(1)
	return c.milli.Load()
}

func (c *handClock) add(ms int) { c.milli.Add(uint64(ms)) }

// sleeper returns a sleep function that advances the clock instead of waiting, and counts its calls
// and their time.
func (c *handClock) sleeper(naps *int, slept *time.Duration) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		*naps++
		*slept += d
		c.add(int(d / time.Millisecond))
		return ctx.Err()
	}
}

// take returns the parts of a new id. If the clock is behind, it waits first.
func take(t *testing.T, g *Generator, meta byte) Parts {
	t.Helper()
	id, err := g.Next(t.Context())
	if errors.Is(err, flake.ErrClockBackwards) {
		if err = g.CatchUp(t.Context()); err == nil {
			id, err = g.Next(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return id.WithMeta(meta).Decompose()
}

func TestNext(t *testing.T) {
	clock := newClock()
	g := newGenerator(t, &Snapshot{Partition: Partition{1, 2}, SequenceMin: 10, SequenceMax: 20}, clock.now)
	for _, c := range []struct {
		ahead    int
		meta     byte
		milli    uint64
		sequence uint16
	}{
		{0, 0, someTime, 10}, {0, 255, someTime, 11}, {3, 7, someTime, 12},
		{1, 7, someTime + 4, 10}, {1000, 7, someTime + 1004, 10}, {0, 0, someTime + 1004, 11},
	} {
		clock.add(c.ahead)
		want := Parts{c.milli, false, c.meta, Partition{1, 2}, c.sequence}
		if got := take(t, g, c.meta); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if g.Sequence() != c.sequence || g.Len() != int(c.sequence)-9 {
			t.Errorf("after %+v: sequence %d, %d ids used", want, g.Sequence(), g.Len())
		}
	}
	clock.add(4)
	if g.Sequence() != 10 || g.Len() != 0 {
		t.Errorf("in a tick without ids: sequence %d, %d ids used", g.Sequence(), g.Len())
	}
	if milli, sequence := g.Last(); milli != someTime+1004 || sequence != 11 || g.PerTick() != 11 {
		t.Errorf("the last id is %d:%d, with %d per tick", milli, sequence, g.PerTick())
	}
}

func TestFirstAndLastTick(t *testing.T) {
	for _, milli := range []uint64{Epoch, MaxMilli} {
		clock := newClock()
		clock.milli.Store(milli)
		g := newGenerator(t, &Snapshot{}, clock.now)
		if id := take(t, g, 0); id.Milli != milli&^3 || id.Sequence != 0 {
			t.Errorf("at %d: %+v", milli, id)
		}
		if id, err := g.NewWithTime(time.UnixMilli(int64(milli))); id.Milli() != milli&^3 || err != nil {
			t.Errorf("with the time %d: %v, %v", milli, id, err)
		}
	}
}

func TestClockOutOfRange(t *testing.T) {
	clock := newClock()
	g := newGenerator(t, nil, clock.now)
	for _, milli := range []uint64{0, Epoch - 1, MaxMilli + 1, 1<<64 - 1} {
		clock.milli.Store(milli)
		if id, err := g.Next(t.Context()); err == nil || errors.Is(err, flake.ErrClockBackwards) {
			t.Errorf("at %d: %v, %v", milli, id, err)
		}
	}
}

func TestDefaultPartitionsDiffer(t *testing.T) {
	a, b := newGenerator(t, nil, nil), newGenerator(t, nil, nil)
	if a.Partition() == b.Partition() {
		t.Errorf("both generators have the partition %v", a.Partition())
	}
	if a.Snapshot().SequenceMin != 0 || a.Snapshot().SequenceMax != 65535 || a.PerTick() != 65536 {
		t.Errorf("%+v", a.Snapshot())
	}
}

// No id repeats, however the clock is set and whichever call notices first.
func TestClockThatSwings(t *testing.T) {
	const maxReads = 10_000_000 // of the clock; about 135,000 suffice
	var reads atomic.Uint64
	g := newGenerator(t, &Snapshot{}, func() uint64 { // 400 ms forward, then 100 or 700 back
		n := reads.Add(1)
		turn := n / 20_000
		return someTime + n/50 - turn*100 - (turn+1)/3*600
	})
	g.marker.Sleep = func(context.Context, time.Duration) error { return nil }
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[ID]bool{}
	for range 8 {
		wg.Go(func() {
			ids := make([]ID, 20_000)
			for done := 0; done < len(ids); {
				n, err := 1, error(nil)
				if done < len(ids)/2 {
					n, err = g.NextN(t.Context(), ids[done:len(ids)/2])
				} else if ids[done], err = g.Next(t.Context()); err != nil {
					n = 0
				}
				if n == 0 && !errors.Is(err, flake.ErrClockBackwards) || reads.Load() > maxReads {
					t.Errorf("%d ids after %d readings of the clock: %v", done, reads.Load(), err)
					return
				}
				done += n
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if seen[id] {
					t.Errorf("%v was made twice", id)
				}
				seen[id] = true
			}
		})
	}
	wg.Wait()
	if drifts := g.Snapshot().Drifts; drifts < 3 {
		t.Errorf("only %d drifts in %d readings of the clock", drifts, reads.Load())
	}
}

func TestNextN(t *testing.T) {
	reads := uint64(0)
	g := newGenerator(t, &Snapshot{SequenceMin: 5, SequenceMax: 14}, func() uint64 { reads++; return someTime + reads })
	ids := make([]ID, 35)
	if n, err := g.NextN(t.Context(), ids); n != len(ids) || err != nil {
		t.Fatal(n, err)
	}
	for i, id := range ids {
		if p := id.Decompose(); p.Sequence != uint16(5+i%10) || p.Meta != 0 || i > 0 && id.Compare(ids[i-1]) <= 0 {
			t.Errorf("%d: %+v", i, p)
		}
	}
	if g.Waits() != 3 {
		t.Errorf("%d calls waited, want 3", g.Waits())
	}
	if run, err := g.Reserve(t.Context(), 0); err == nil || run.Count != 0 {
		t.Errorf("0 ids: %+v, %v", run, err)
	}
	reads -= 40 // set back
	if _, err := g.NextN(t.Context(), ids[:1]); err != nil || g.Snapshot().Drifts != 1 || g.Waits() != 3 {
		t.Errorf("%v, %+v, %d waits", err, g.Snapshot(), g.Waits())
	}
}

func TestNewWithTime(t *testing.T) {
	g := newGenerator(t, &Snapshot{Partition: Partition{1, 2}, SequenceMin: 12, SequenceMax: 23, Drifts: 1}, nil)
	at := time.UnixMilli(someTime + 3)
	for i := range 30 {
		id, err := g.NewWithTime(at)
		want := Parts{someTime, false, byte(i), Partition{1, 2}, uint16(12 + i%12)}
		if got := id.WithMeta(byte(i)).Decompose(); got != want || err != nil {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	far := time.Unix(1<<63-62135596801, 999_999_999)
	for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(Epoch - 1), time.UnixMilli(MaxMilli + 1), far,
		time.Unix(1<<61+someTime/1000, 0), time.Unix(math.MinInt64, 0)} {
		if id, err := g.NewWithTime(at); err == nil {
			t.Errorf("at %v: %v", at, id)
		}
	}
	if lowest, highest := Span(time.Unix(math.MinInt64, 0), far); lowest != (ID{}) || highest != maxID {
		t.Errorf("%x to %x", lowest, highest)
	}
	if id := Notional(far); id.Milli() != lastTick {
		t.Errorf("%x", id)
	}
}

func TestZeroGenerator(t *testing.T) {
	var g Generator
	if id, err := g.NewWithTime(time.UnixMilli(someTime)); err == nil {
		t.Error(id)
	}
	g.Snapshot()
	if milli, _ := g.Last(); milli != Epoch || g.Partition() != (Partition{}) {
		t.Errorf("the last id is at %d", milli)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		s         Snapshot
		low, high uint16
		ok        bool
	}{
		{Snapshot{}, 0, 65535, true},
		{Snapshot{SequenceMin: 7}, 7, 65535, true},
		{Snapshot{SequenceMin: 65535}, 0, 65535, true},
		{Snapshot{SequenceMin: 20, SequenceMax: 10}, 10, 20, true},
		{Snapshot{SequenceMin: 10, SequenceMax: 15}, 10, 15, true},
		{Snapshot{SequenceMin: 10, SequenceMax: 14}, 0, 0, false},
		{Snapshot{SequenceMin: 10, SequenceMax: 10}, 0, 0, false},
		{Snapshot{SequenceMin: 65531}, 0, 0, false},
		{Snapshot{SequenceMin: 10, SequenceMax: 20, Sequence: 10}, 10, 20, true},
		{Snapshot{SequenceMin: 10, SequenceMax: 20, Sequence: 99}, 10, 20, true},
		{Snapshot{SequenceMin: 10, SequenceMax: 20, Sequence: 9}, 0, 0, false},
		{Snapshot{WallHi: maxUnits, WallSafe: maxUnits, Now: maxUnits}, 0, 65535, true},
		{Snapshot{WallHi: -1}, 0, 0, false},
		{Snapshot{WallSafe: maxUnits + 1}, 0, 0, false},
		{Snapshot{Now: maxUnits + 1}, 0, 0, false},
	} {
		g, err := NewGenerator(&c.s, Options{})
		var bounds *BoundsError
		switch isOfBounds := errors.As(err, &bounds); {
		case (err == nil) != c.ok || isOfBounds != (err != nil && c.s.Now == 0 && c.s.WallHi == 0 && c.s.WallSafe == 0):
			t.Errorf("%+v: %v", c.s, err)
		case isOfBounds && (bounds.Min > bounds.Max || bounds.Sequence != c.s.Sequence):
			t.Errorf("%+v: %+v", c.s, bounds)
		case err == nil && (g.SequenceMin() != c.low || g.SequenceMax() != c.high):
			t.Errorf("%+v: %d to %d", c.s, g.SequenceMin(), g.SequenceMax())
		}
	}
}

func TestSnapshotContinues(t *testing.T) {
	clock := newClock()
	g := newGenerator(t, &Snapshot{Partition: Partition{1, 2}, SequenceMin: 10, SequenceMax: 20}, clock.now)
	seen := map[ID]bool{}
	for i, ahead := range []int{0, 0, 4, 0, -4, 0, 0, 400, -8, 0, 12, 0} {
		clock.add(ahead)
		data, err := json.Marshal(g.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		var s Snapshot
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		g = newGenerator(t, &s, clock.now)
		back := g.Snapshot()
		if s.Now != s.WallHi {
			back.Sequence = s.Sequence // all count as used
		}
		if back != s {
			t.Fatalf("%d: %+v, want %+v", i, back, s)
		}
		id, err := g.Next(t.Context())
		if err != nil || seen[id] {
			t.Fatalf("%d: %v, %v", i, id.Decompose(), err)
		}
		seen[id] = true
	}
	if s := g.Snapshot(); s.Drifts != 2 {
		t.Errorf("%+v", s)
	}
}

// A snapshot from muyo/sno that was taken after the last id's tick does not contain that id's
// sequence, so all sequence numbers of the tick count as used.
func TestLaterSnapshot(t *testing.T) {
	clock := newClock()
	units := unitsOf(someTime)
	g := newGenerator(t, &Snapshot{Now: units + 1, WallHi: units, SequenceMax: 9}, clock.now)
	if _, sequence := g.Last(); sequence != 9 {
		t.Errorf("the last sequence is %d", sequence)
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"partition":[65,10],"sequenceMin":5,"sequenceMax":50,"sequence":7,` +
		`"now":9,"wallHi":9,"wallSafe":8,"drifts":3}`))
	f.Add([]byte(`{"sequenceMin":65535,"sequence":70000,"now":1,"wallHi":109922848000,"wallSafe":549755813887}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Snapshot
		if json.Unmarshal(data, &s) != nil {
			return
		}
		g, err := NewGenerator(&s, Options{Clock: func() uint64 { return someTime }})
		if err != nil {
			return
		}
		first := g.Snapshot()
		again, err := NewGenerator(&first, Options{Clock: func() uint64 { return someTime }})
		if err != nil {
			t.Fatalf("%+v: %v", first, err)
		}
		if second := again.Snapshot(); second.WallHi != first.WallHi || second.Drifts != s.Drifts ||
			second.WallSafe != s.WallSafe || second.Partition != s.Partition || again.PerTick() != g.PerTick() {
			t.Fatalf("%+v, then %+v, then %+v", s, first, second)
		}
	})
}

func TestNew(t *testing.T) {
	const callers, each = 8, 20_000
	ids := make([][]ID, callers)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			for range each {
				ids[i] = append(ids[i], New(byte(i)))
			}
		})
	}
	all.Wait()
	seen := make(map[ID]bool)
	partition := New(0).Partition()
	for i, some := range ids {
		for j, id := range some {
			if bare := id.WithMeta(0); seen[bare] || id.Meta() != byte(i) || id.Partition() != partition ||
				j > 0 && id.Compare(some[j-1]) <= 0 {
				t.Fatalf("%v after %v, seen before: %t", id, some[max(j, 1)-1], seen[bare])
			}
			seen[id.WithMeta(0)] = true
		}
	}
	if now := time.Now(); New(0).Time().After(now.Add(time.Minute)) || New(0).Time().Before(now.Add(-time.Minute)) {
		t.Errorf("New returned an id from %v at %v", New(0).Time(), now)
	}
	if g := newGenerator(t, nil, nil); g.Partition() == partition {
		t.Error("NewGenerator chose the partition of New")
	}
	if standard().PerTick() < 1<<15 {
		t.Errorf("New makes only %d ids per tick", standard().PerTick())
	}
}

func TestOverflow(t *testing.T) {
	var reads atomic.Uint64
	events := make(chan Overflow, 10)
	g, err := NewGenerator(&Snapshot{SequenceMax: 9}, Options{Overflows: events,
		Clock: func() uint64 { return someTime + reads.Add(1)/100 }})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]ID, 30)
	if _, err := g.NextN(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	reads.Add(10_000)
	if _, err := g.NextN(t.Context(), ids[:11]); err != nil {
		t.Fatal(err)
	}
	reads.Add(10_000)
	for range 11 { // one by one
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(events)
	ticks := []uint32{1, 2, 1, 1}
	for o := range events {
		if o.Now.UnixMilli()%4 != 0 || o.Count != 1 || len(ticks) == 0 || o.Ticks != ticks[0] {
			t.Fatalf("%+v, want ticks %v", o, ticks)
		}
		ticks = ticks[1:]
	}
	if len(ticks) != 0 {
		t.Errorf("no Overflow with ticks %v", ticks)
	}
}

// Calls that wait for the same tick are reported once, together.
func TestOverflowOfManyCalls(t *testing.T) {
	events := make(chan Overflow, 2)
	o := &overflow{events: events}
	o.waiting.Add(2)
	for range 2 {
		o.end(someTime)
	}
	if got := <-events; got.Count != 2 || got.Ticks != 1 || len(events) != 0 || o.waiting.Load() != 0 {
		t.Errorf("got %+v, and %d more; %+v", got, len(events), o)
	}
}

// With Overflows set, calls wait for the mark as they do without it.
func TestOverflowsAndTheMark(t *testing.T) {
	clock := newClock()
	g, err := NewGenerator(&Snapshot{}, Options{Overflows: make(chan Overflow, 1), Clock: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	limit := g.passes.now.Load().ids.Limit()
	limit.Set(someTime)
	limit.Extend = func(ctx context.Context, milli uint64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		limit.Set(milli)
		return nil
	}
	clock.add(8)
	if id := take(t, g, 0); id.Milli != someTime+8 || g.overflow.ticks != 0 {
		t.Errorf("%+v, %+v", id, g.overflow)
	}
}

// An overflow that nobody receives delays no call.
func TestOverflowNotTaken(t *testing.T) {
	g, err := NewGenerator(&Snapshot{SequenceMax: 5}, Options{Overflows: make(chan Overflow)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := g.NextN(t.Context(), make([]ID, 10)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g.overflow.waiting.Load() != 0 || g.overflow.ticks == 0 {
		t.Errorf("%+v", g.overflow)
	}
}

var duplicatesIDs = flag.Int("duplicates.ids", 1_000_000, "how many ids to make from 8 goroutines")

func TestNoDuplicates(t *testing.T) {
	duplicates.Check(t, *duplicatesIDs, newGenerator(t, nil, nil),
		func(id ID) uint64 { return id.Milli()/unit<<16 | uint64(id.Sequence()) },
		func(id, last ID) bool { return id.Compare(last) > 0 })
}
