package flake

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

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

func TestClockBackwards(t *testing.T) {
	clock := &handClock{1000}
	g := newGenerator(t, clock.now)
	before := next(t, g)
	clock.milli = 999
	if id, err := g.Next(t.Context()); !errors.Is(err, ErrClockBackwards) || id != (ID{}) {
		t.Errorf("%v, %v", id, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.CatchUp(ctx); !errors.Is(err, context.Canceled) || g.Behind() != time.Millisecond {
		t.Errorf("CatchUp with a canceled context: %v, %v behind", err, g.Behind())
	}
	clock.milli = 1000
	if after := next(t, g); after != Make(1000, g.Worker(), 1) || after.Compare(before) <= 0 {
		t.Errorf("after the clock has caught up: %v", after)
	}
}

func TestNextNReturnsCountOnError(t *testing.T) {
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

// NextN can fill a slice with more ids than one millisecond has.
func TestNextNOfTwoMilliseconds(t *testing.T) {
	ids := make([]ID, perMilli*3/2)
	n, err := newGenerator(t, nil).NextN(t.Context(), ids)
	if err != nil || n != len(ids) || ids[0].Milli() == ids[n-1].Milli() {
		t.Errorf("%d, %v", n, err)
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
		t.Errorf("a call that need not wait failed: %d, %v", n, err)
	}
}

func TestGeneratorRefusesWhatDoesNotFit(t *testing.T) {
	if _, err := NewGenerator(MaxWorker+1, Options{}); err == nil {
		t.Error("a worker of 49 bits is accepted")
	}
	if g, err := Open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), MaxWorker+1, Options{}); err == nil {
		t.Errorf("a worker of 49 bits is accepted: %v", g)
	}
	if g, err := NewGenerator(MaxWorker, Options{}); err != nil || g.Worker() != MaxWorker {
		t.Errorf("the highest worker is refused: %v", err)
	}
	for _, milli := range []uint64{tick.MaxLast + 1, 1<<64 - 1} {
		clock := &handClock{milli}
		g := newGenerator(t, clock.now)
		if id, err := g.Next(t.Context()); err == nil {
			t.Errorf("at %d: %v", milli, id)
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
		t.Errorf("%d calls waited, want none", g.Waits())
	}
}

// A time that is too late for an id counts as the latest that ID.Time returns, and a time before
// 1970 as 1970.
func TestFarTimes(t *testing.T) {
	const last = math.MaxInt64
	far, before := time.Unix(1<<63-62135596801, 999_999_999), time.Unix(math.MinInt64, 0)
	if id := Notional(far); id != Make(last, 0, 0) {
		t.Errorf("%x", id)
	}
	if lowest, highest := Span(before, far); lowest != (ID{}) || highest != Make(last, MaxWorker, 1<<16-1) {
		t.Errorf("%x to %x", lowest, highest)
	}
	path := filepath.Join(t.TempDir(), "timestamp")
	if mark, err := RaiseMark(path, before); mark.UnixMilli() != 0 || err != nil {
		t.Errorf("the mark is raised to %v, %v", mark, err)
	}
	if mark, err := RaiseMark(path, far); err == nil {
		t.Errorf("the mark is raised to %v, for the time %v, without an error", mark, far)
	}
}

func TestNew(t *testing.T) {
	const callers, each = 8, 20_000
	ids := make([][]ID, callers)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			for range each {
				ids[i] = append(ids[i], New())
			}
		})
	}
	all.Wait()
	seen := make(map[ID]bool)
	worker := New().Worker()
	for _, some := range ids {
		for i, id := range some {
			if seen[id] || id.Worker() != worker || i > 0 && id.Compare(some[i-1]) <= 0 {
				t.Fatalf("%v after %v, of worker %v, seen before: %t", id, some[max(i, 1)-1], worker, seen[id])
			}
			seen[id] = true
		}
	}
	if worker&multicast == 0 {
		t.Errorf("%v may be the address of a network card", worker)
	}
	if now := time.Now(); New().Time().After(now.Add(time.Minute)) || New().Time().Before(now.Add(-time.Minute)) {
		t.Errorf("New returned an id from %v at %v", New().Time(), now)
	}
}

func TestParse(t *testing.T) {
	id := Make(1_700_000_000_000, 0x0200_0000_abcd, 0xef01)
	hexadecimal := strings.ReplaceAll(id.UUID(), "-", "")
	for _, text := range []string{
		id.String(), id.UUID(), strings.ToUpper(id.UUID()), hexadecimal, strings.ToUpper(hexadecimal),
		"0x" + hexadecimal, `\x` + hexadecimal,
	} {
		if got, err := Parse(text); got != id || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	short, _ := id.Text(62)
	for text, at := range map[string]int{
		"":                             0,
		short:                          0, // may also be a decimal snowflake
		id.String() + "0":              0,
		"zzzzzzzzzzzzzzzzzzzzzz":       0,
		"0X" + hexadecimal:             0,
		"0x" + hexadecimal[1:]:         0,
		"0x" + hexadecimal[1:] + "g":   33,
		hexadecimal[1:] + "-":          31,
		id.UUID()[:35] + "_":           35,
		"0000AboKHPfE7cAx9OrC_Z":       20,
		strings.Repeat("0", 10_000):    0,
		" " + id.String():              0,
		"{" + id.UUID()[1:35] + "}":    0,
		"018bcfe568000200000000010007": 0,
	} {
		var where *ParseError
		if got, err := Parse(text); !errors.As(err, &where) || where.At != at || got != (ID{}) ||
			len(err.Error()) > 250 {
			t.Errorf("%q: %v, %v, want an error at %d", text, got, err, at)
		}
	}
}

// go doc shows the fields of a type only in the package that declares it.
func TestDeclaredHere(t *testing.T) {
	const here = "github.com/flake-go/flake/flake"
	for _, of := range []reflect.Type{reflect.TypeFor[Options](), reflect.TypeFor[ParseError]()} {
		if of.PkgPath() != here || of.NumField() == 0 {
			t.Errorf("%v is declared in %q", of, of.PkgPath())
		}
	}
}
