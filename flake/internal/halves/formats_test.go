package halves_test

import (
	"context"
	"encoding"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/duplicates"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

const (
	someTime   = 1_700_000_000_000
	someWorker = flake.Worker(0x0200_0000_0001)
)

type idOf[ID any] interface {
	comparable
	encoding.TextAppender
	fmt.Stringer
	Milli() uint64
	Time() time.Time
	Worker() flake.Worker
	Sequence() uint16
	Random() uint16
	Compare(ID) int
	Plus(i int) ID
}

type generatorOf[ID idOf[ID]] interface {
	duplicates.Generator[ID]
	Reserve(ctx context.Context, n int) (flake.RunOf[ID], error)
	Worker() flake.Worker
}

// A format holds the functions of its package.
type format[ID idOf[ID], G generatorOf[ID]] struct {
	newID        func() ID
	newGenerator func(flake.Worker, flake.Options) (G, error)
	makeID       func(milli uint64, w flake.Worker, sequence, random uint16) (ID, error)
	parse        func(text string) (ID, error)
	bits         int // of the sequence
}

var (
	uuids = format[uuidv7.ID, *uuidv7.Generator]{uuidv7.New, uuidv7.NewGenerator, uuidv7.Make, uuidv7.Parse, 12}
	ulids = format[ulid.ID, *ulid.Generator]{ulid.New, ulid.NewGenerator, ulid.Make, ulid.Parse, 16}
)

func (f format[ID, G]) generator(t testing.TB, clock func() uint64) G {
	t.Helper()
	g, err := f.newGenerator(someWorker, flake.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var duplicatesIDs = flag.Int("duplicates.ids", 400_000, "how many ids of each format to make from 8 goroutines")

func TestNoDuplicates(t *testing.T) {
	t.Run("uuidv7", uuids.testNoDuplicates)
	t.Run("ulid", ulids.testNoDuplicates)
}

func (f format[ID, G]) testNoDuplicates(t *testing.T) {
	duplicates.Check(t, *duplicatesIDs, f.generator(t, nil),
		func(id ID) uint64 {
			place := uint64(id.Sequence())
			if f.bits == 12 && place == 1<<12-1 { // the random bits are a counter; 15 bits suffice
				place += uint64(id.Random())
			}
			return id.Milli()<<max(f.bits, 15) | place
		},
		func(id, last ID) bool { return id.Compare(last) > 0 && id.Worker() == someWorker })
}

func TestNew(t *testing.T) {
	t.Run("uuidv7", uuids.testNew)
	t.Run("ulid", ulids.testNew)
}

func (f format[ID, G]) testNew(t *testing.T) {
	last := f.newID()
	for range 10_000 {
		id := f.newID()
		if id.Compare(last) <= 0 || id.Worker() != last.Worker() {
			t.Fatalf("%v after %v", id, last)
		}
		last = id
	}
	if last.Worker()&(1<<40) == 0 {
		t.Errorf("%v may be the address of a network card", last.Worker())
	}
	if now := time.Now(); last.Time().After(now.Add(time.Minute)) || last.Time().Before(now.Add(-time.Minute)) {
		t.Errorf("%v at %v", last.Time(), now)
	}
}

func TestGenerator(t *testing.T) {
	t.Run("uuidv7", uuids.testGenerator)
	t.Run("ulid", ulids.testGenerator)
}

func (f format[ID, G]) testGenerator(t *testing.T) {
	milli := uint64(0)
	g := f.generator(t, func() uint64 { return milli })
	for _, milli = range []uint64{0, 1, someTime, 1<<47 - 2} {
		for sequence := range uint16(3) {
			id, err := g.Next(t.Context())
			want, _ := f.makeID(milli, someWorker, sequence, id.Random())
			if id != want || err != nil || g.Worker() != someWorker {
				t.Errorf("at %d: %v, %v, want %v", milli, id, err, want)
			}
		}
	}
	run, err := g.Reserve(t.Context(), 3)
	if err != nil || run.Count != 3 || run.At(0) != run.First || run.At(2).Sequence() != 5 ||
		run.At(2).Random() != run.First.Random() {
		t.Errorf("%v, %v", run, err)
	}
	var none ID
	for _, milli = range []uint64{someTime, 0} {
		if id, err := g.Next(t.Context()); !errors.Is(err, flake.ErrClockBackwards) || id != none {
			t.Errorf("with the clock set back to %d: %v, %v", milli, id, err)
		}
	}
	for _, milli = range []uint64{1<<47 - 1, 1 << 48, 1<<64 - 1} {
		if id, err := g.Next(t.Context()); err == nil {
			t.Errorf("at %d, which does not fit: %v", milli, id)
		}
	}
	if g, err := f.newGenerator(1<<48, flake.Options{}); err == nil {
		t.Errorf("newGenerator accepted worker %v", g.Worker())
	}
}

// BenchmarkNext uses a clock with which a millisecond never runs out of ids.
func BenchmarkNext(b *testing.B) {
	b.Run("uuidv7", uuids.benchmarkNext)
	b.Run("ulid", ulids.benchmarkNext)
}

func (f format[ID, G]) benchmarkNext(b *testing.B) {
	b.ReportAllocs()
	milli := uint64(someTime)
	g := f.generator(b, func() uint64 { milli++; return milli })
	for b.Loop() {
		if _, err := g.Next(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	b.Run("uuidv7", uuids.benchmarkText)
	b.Run("ulid", ulids.benchmarkText)
}

func (f format[ID, G]) benchmarkText(b *testing.B) {
	id := f.newID()
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = id.AppendText(buf[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		text := id.String()
		for b.Loop() {
			f.parse(text)
		}
	})
}
