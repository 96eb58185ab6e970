package snowflake

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const someTime = 1_700_000_000_000

// handClock is a clock that is set by hand.
type handClock struct{ milli uint64 }

func (c *handClock) now() uint64 { return c.milli }

func newTest(t testing.TB, l Layout, m Machine, o Options) *Generator {
	t.Helper()
	g, err := NewGenerator(l, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next(t testing.TB, g *Generator) ID {
	t.Helper()
	id, err := g.Next()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestOptions(t *testing.T) {
	split := Layout{Time: 41, Datacenter: 4, Worker: 6, Sequence: 12}
	for name, c := range map[string]struct {
		l    Layout
		m    Machine
		o    Options
		says string // of the error; empty: there is none
		id   int
	}{
		"nothing given":            {l: Idgen, id: 0},
		"idgen's example":          {l: Idgen, m: DatacenterWorker(9, 7), id: 295},
		"highest parts":            {l: Idgen, m: DatacenterWorker(31, 31), id: 1023},
		"highest id":               {l: Idgen, m: MachineID(1023), id: 1023},
		"another split":            {l: split, m: DatacenterWorker(15, 63), id: 1023},
		"no datacenter":            {l: Twitter, m: DatacenterWorker(0, 1023), id: 1023},
		"id too high":              {l: Idgen, m: MachineID(1024), says: "machine id 1024, where 0 to 1023 fit"},
		"id below 0":               {l: Idgen, m: MachineID(-1), says: "machine id -1"},
		"datacenter too high":      {l: Idgen, m: DatacenterWorker(32, 0), says: "datacenter 32, where 0 to 31 fit"},
		"datacenter below 0":       {l: Idgen, m: DatacenterWorker(-1, 0), says: "datacenter -1"},
		"worker too high":          {l: Idgen, m: DatacenterWorker(0, 32), says: "worker 32, where 0 to 31 fit"},
		"worker below 0":           {l: Idgen, m: DatacenterWorker(0, math.MinInt), says: "worker -9"},
		"a datacenter for Twitter": {l: Twitter, m: DatacenterWorker(1, 0), says: "datacenter 1, where 0 to 0 fit"},
		"highest mask":             {l: Idgen, o: Options{SequenceMask: 0xfff}},
		"mask too high":            {l: Idgen, o: Options{SequenceMask: 0x1000}, says: "seqMask 0x1000, where 0 to 0xfff fit"},
		"mask below 0":             {l: Idgen, o: Options{SequenceMask: -1}, says: "seqMask -0x1"},
		"no layout":                {says: "0 bits of time"},
		"bits missing":             {l: Layout{Time: 41, Worker: 9, Sequence: 12}, says: "22 in all"},
		"lowest id":                {l: Idgen, m: MachineID(0), id: 0},
		"an epoch of now":          {l: Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: someTime}},
		"an epoch to come":         {l: Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: someTime + 1}, says: "ahead of the clock"},
		"an epoch out of range":    {l: Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: 1 << 63}, says: "can be counted"},
	} {
		c.o.Clock = func() uint64 { return someTime }
		g, err := NewGenerator(c.l, c.m, c.o)
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err != nil {
			if d, err := Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), c.l, c.m, c.o); err == nil {
				t.Errorf("%s: opened %v", name, d)
			}
			continue
		}
		if p := c.l.Decompose(next(t, g)); p.Machine != c.id || g.MachineID() != c.id || p.Milli != someTime || g.Machine() != c.m || g.Layout() != c.l {
			t.Errorf("%s: %+v, of machine %d, want %d", name, p, g.MachineID(), c.id)
		}
	}
}

func TestProperties(t *testing.T) {
	type given struct {
		n  int
		ok bool
	}
	for _, c := range []struct {
		m                  Machine
		datacenter, worker given
	}{
		{Machine{}, given{0, true}, given{0, true}},
		{DatacenterWorker(9, 7), given{9, true}, given{7, true}},
		{MachineID(100), given{}, given{}},
	} {
		d, ok1 := c.m.Datacenter()
		w, ok2 := c.m.Worker()
		if (given{d, ok1}) != c.datacenter || (given{w, ok2}) != c.worker {
			t.Errorf("%+v: datacenter %d, %v, worker %d, %v", c.m, d, ok1, w, ok2)
		}
	}
}

func TestOverflow(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Idgen, MachineID(5), Options{Clock: clock.now})
	for i := range 4096 {
		id, err := g.TryNext()
		if want, _ := Idgen.Make(someTime, 5, i); id != want || err != nil {
			t.Fatalf("id %d is %v, %v, want %v", i, id, err, want)
		}
	}
	for range 2 {
		if id, err := g.TryNext(); !errors.Is(err, ErrSequence) || id != 0 || !strings.HasPrefix(err.Error(), "Sequence exceeded its maximum value.") {
			t.Errorf("id 4097 is %v, %v", id, err)
		}
	}
	clock.milli++
	if id := next(t, g); Idgen.Decompose(id) != (Parts{someTime + 1, 5, 0, 5, 0}) {
		t.Errorf("%+v", Idgen.Decompose(id))
	}
}

func TestNextWaits(t *testing.T) {
	reads := uint64(0)
	g := newTest(t, Twitter, MachineID(1), Options{SequenceMask: 3, Clock: func() uint64 { // a millisecond takes 10 reads
		reads++
		return someTime + reads/10
	}})
	last := ID(0)
	for i := range 100 {
		id := next(t, g)
		p := Twitter.Decompose(id)
		if id <= last || p.Sequence > 3 || p.Milli > someTime+reads/10 {
			t.Fatalf("id %d is %+v", i, p)
		}
		last = id
	}
	if g.Waits() == 0 {
		t.Error("it has not waited")
	}
}

func TestClockBackwards(t *testing.T) {
	clock := &handClock{someTime}
	g := newTest(t, Idgen, MachineID(5), Options{Clock: clock.now})
	last := next(t, g)
	clock.milli -= 42
	ids := make([]ID, 3)
	for name, f := range map[string]func() (ID, error){
		"Next":    g.Next,
		"TryNext": g.TryNext,
		"NextN":   func() (ID, error) { n, err := g.NextN(ids); return ID(n), err },
	} {
		id, err := f()
		var behind *ClockError
		if id != 0 || !errors.Is(err, ErrClockBackwards) || !errors.As(err, &behind) || behind.Behind != 42 ||
			err.Error() != "Clock moved backwards. Refusing to generate id for 42 milliseconds" {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	clock.milli += 42
	if id := next(t, g); id != last+1 {
		t.Errorf("%v after %v", id, last)
	}
	if milli, used := g.Last(); milli != someTime || used != 2 {
		t.Errorf("the last is of %d, of which %d are used", milli, used)
	}
}

func TestWait(t *testing.T) {
	clock := func() uint64 { return someTime }
	g := newTest(t, Idgen, MachineID(5), Options{SequenceMask: 1, Clock: func() uint64 { return clock() }})
	last := next(t, g)
	reads := uint64(0)
	clock = func() uint64 { // behind, and catches up by being read
		reads++
		return someTime - 3 + reads
	}
	for range 5 { // of them some wait for the clock, some for the next millisecond
		id, err := g.Wait(t.Context())
		if err != nil || id <= last {
			t.Errorf("%v after %v, %v", id, last, err)
		}
		last = id
	}
	reads = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := g.Wait(ctx); !errors.Is(err, context.Canceled) || id != 0 {
		t.Errorf("given up: %v, %v", id, err)
	}
	g.core.Close()
	if id, err := g.Wait(t.Context()); !errors.Is(err, ErrClosed) || id != 0 {
		t.Errorf("closed: %v, %v", id, err)
	}
}

// As flake-idgen does: the mask is what the count is cut by, so what follows
// its first 0 has no part.
func TestSequenceMask(t *testing.T) {
	for mask, want := range map[int]int{0: 4096, 1: 2, 2: 1, 3: 4, 5: 2, 0xff0: 1, 0x7ff: 2048, 0xffe: 1, 0xfef: 16, 0xfff: 4096} {
		g := newTest(t, Idgen, MachineID(1), Options{SequenceMask: mask, Clock: func() uint64 { return someTime }})
		made := 0
		for ; ; made++ {
			id, err := g.TryNext()
			if err != nil {
				break
			}
			if p := Idgen.Decompose(id); p.Sequence != made {
				t.Fatalf("mask %#x: sequence %d after %d ids", mask, p.Sequence, made)
			}
		}
		if made != want {
			t.Errorf("mask %#x: %d ids, want %d", mask, made, want)
		}
	}
}

func TestReserve(t *testing.T) {
	g := newTest(t, Twitter, MachineID(3), Options{Clock: func() uint64 { return someTime }})
	for _, c := range []struct{ n, first, count int }{{1, 0, 1}, {10, 1, 10}, {1 << 20, 11, 4085}} {
		run, err := g.Reserve(t.Context(), c.n)
		first, _ := Twitter.Make(someTime, 3, c.first)
		if run.First != first || run.Count != c.count || run.At(c.count-1) != first+ID(c.count)-1 || err != nil {
			t.Errorf("%d ids: %+v, %v", c.n, run, err)
		}
	}
	for _, n := range []int{0, -1} {
		if run, err := g.Reserve(t.Context(), n); err == nil {
			t.Errorf("%d ids: %+v", n, run)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := g.NextContext(ctx, make([]ID, 1)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %d, %v", n, err)
	}
}

func TestNextNTakesWholeRanges(t *testing.T) {
	reads := uint64(0)
	g := newTest(t, Twitter, MachineID(3), Options{Clock: func() uint64 {
		reads++
		return someTime + reads/10
	}})
	ids := make([]ID, 3*4096+5)
	if n, err := g.NextN(ids); n != len(ids) || err != nil {
		t.Fatal(n, err)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("the ids do not increase")
	}
}

func TestOpen(t *testing.T) {
	path, milli, last := filepath.Join(t.TempDir(), "timestamp"), uint64(someTime), ID(0)
	for range 2 {
		d, err := Open(t.Context(), path, Twitter, MachineID(1), Options{Clock: func() uint64 { return milli }})
		if err != nil {
			t.Fatal(err)
		}
		id := next(t, d.Generator)
		if want, _ := Twitter.Make(milli, 1, 0); id != want || id <= last {
			t.Errorf("%v after %v, want %v", id, last, want)
		}
		if at, err := d.LastSaved(); at.UnixMilli() != int64(milli) || err != nil || d.Mark().UnixMilli() != int64(milli)+3000 {
			t.Errorf("saved at %v, %v, the mark at %v", at, err, d.Mark())
		}
		if other, err := Open(t.Context(), path, Twitter, MachineID(1), Options{}); err == nil {
			t.Errorf("opened twice: %v", other)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if id, err := d.Next(); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v, %v", id, err)
		}
		if at, used := d.Last(); at != milli || used != 1 {
			t.Errorf("after Close the last is %d:%d", at, used)
		}
		if at := d.Mark(); at.UnixMilli() != int64(milli) {
			t.Errorf("after Close the mark is at %v", at)
		}
		if err := d.Ready(); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		last = id
		milli++
	}
	milli -= 10_000
	if d, err := Open(t.Context(), path, Twitter, MachineID(1), Options{Clock: func() uint64 { return milli }}); !errors.Is(err, ErrClockBackwards) {
		t.Errorf("with the clock set back: %v, %v", d, err)
	}
}

func TestNoAllocation(t *testing.T) {
	g := newTest(t, Twitter, MachineID(1), Options{RandomStart: true})
	ids, text := make([]ID, 16), make([]byte, 0, 64)
	id := next(t, g)
	number, _ := id.Text(62)
	short := Base58.Text(id)
	for name, f := range map[string]func(){
		"Next":         func() { g.Next() },
		"NextN":        func() { g.NextN(ids) },
		"Reserve":      func() { g.Reserve(context.Background(), 16) },
		"AppendText":   func() { id.AppendText(text, 62) },
		"AppendPadded": func() { id.AppendPadded(text, 62) },
		"Base58":       func() { Base58.Append(text, id) },
		"Parse":        func() { Parse(number, 62) },
		"ParseBase58":  func() { Base58.Parse(short) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestZeroGenerator(t *testing.T) {
	var g Generator
	for name, next := range map[string]func() (ID, error){
		"Next": g.Next, "TryNext": g.TryNext, "Wait": func() (ID, error) { return g.Wait(t.Context()) },
		"NextN":   func() (ID, error) { _, err := g.NextN(make([]ID, 2)); return 0, err },
		"Reserve": func() (ID, error) { run, err := g.Reserve(t.Context(), 2); return run.First, err },
	} {
		if id, err := next(); id != 0 || err == nil {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	if milli, used := g.Last(); milli != 0 || used != 0 || g.Waits() != 0 || g.PerTick() != 0 || g.Behind() != 0 || g.Ready() == nil {
		t.Errorf("the last is %d:%d", milli, used)
	}
}

// The last millisecond that fits has ids, and the next has none.
func TestEndOfTime(t *testing.T) {
	for _, l := range []Layout{Twitter, Idgen} {
		last := l.Epoch + l.span()
		milli := last
		g := newTest(t, l, MachineID(1), Options{Clock: func() uint64 { return milli }})
		if p := l.Decompose(next(t, g)); p.Milli != last || p.Machine != 1 {
			t.Errorf("%+v", p)
		}
		milli++
		if id, err := g.Next(); err == nil {
			t.Errorf("after it: %v", id)
		}
	}
}
