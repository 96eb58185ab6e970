package halves

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/internal/simulate"
)

// anID is an id of either layout.
type anID [16]byte

func (id anID) Plus(i int) anID { return Plus(id, i) }

var layouts = map[string]Layout{"uuidv7": UUIDv7, "ulid": ULID}

// Each bit of an id belongs to one field, or is constant.
func TestBits(t *testing.T) {
	for name, l := range layouts {
		highest, err := l.Make(MaxMilli, flake.MaxWorker, 1<<l.Sequence-1, 1<<l.Random-1)
		lowest, err0 := l.Make(0, 0, 0, 0)
		if err != nil || err0 != nil {
			t.Fatal(err, err0)
		}
		high, low := binary.BigEndian.Uint64(lowest[:8]), binary.BigEndian.Uint64(lowest[8:])
		if high != l.High || low != l.Low {
			t.Errorf("%s: the lowest is %x", name, lowest)
		}
		if name == "uuidv7" {
			high, low = 8<<12, 1<<62 // constant bits that are 0
		}
		if binary.BigEndian.Uint64(highest[:8]) != ^high || binary.BigEndian.Uint64(highest[8:]) != ^low {
			t.Errorf("%s: the highest is %x", name, highest)
		}
		for i := range 48 {
			milli, worker := uint64(1)<<i, flake.Worker(1)<<(47-i)
			sequence, random := uint16(1)<<(i%l.Sequence), uint16(1)<<(i%l.Random)
			id, err := l.Make(milli, worker, sequence, random)
			if err != nil || Milli(id) != milli || l.Worker(id) != worker || l.SequenceOf(id) != sequence ||
				l.RandomOf(id) != random {
				t.Errorf("%s: %d, %v, %d, %d do not round-trip through %x, %v", name, milli, worker, sequence, random, id, err)
			}
			if got := Time(id); uint64(got.UnixMilli()) != milli {
				t.Errorf("%s: %d is %v", name, milli, got)
			}
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	for name, l := range layouts {
		for what, make := range map[string]func() ([16]byte, error){
			"a time":     func() ([16]byte, error) { return l.Make(MaxMilli+1, 0, 0, 0) },
			"any time":   func() ([16]byte, error) { return l.Make(math.MaxUint64, 0, 0, 0) },
			"a worker":   func() ([16]byte, error) { return l.Make(0, flake.MaxWorker+1, 0, 0) },
			"a sequence": func() ([16]byte, error) { return UUIDv7.Make(0, 0, 1<<12, 0) },
			"random":     func() ([16]byte, error) { return UUIDv7.Make(0, 0, 0, 1<<14) },
		} {
			if id, err := make(); err == nil || id != [16]byte{} {
				t.Errorf("%s: %s that does not fit: %x", name, what, id)
			}
		}
		_, err := New[anID](l, flake.MaxWorker+1, flake.Options{})
		path := filepath.Join(t.TempDir(), "timestamp")
		if _, errOpen := Open[anID](t.Context(), path, l, flake.MaxWorker+1, flake.Options{}); err == nil || errOpen == nil {
			t.Errorf("%s: a generator with a worker of 49 bits", name)
		}
	}
	if _, err := UUIDv7.Make(0, 0, 1<<12, 0); err == nil ||
		!strings.Contains(err.Error(), "4096 is out of range: must be 0 to 4095") {
		t.Error(err)
	}
}

// After a restart with the clock set back, there are no ids until the clock has passed the mark.
func TestOpen(t *testing.T) {
	for name, l := range layouts {
		path, milli := filepath.Join(t.TempDir(), "timestamp"), uint64(1_700_000_000_000)
		var last anID
		for range 2 {
			g, err := Open[anID](t.Context(), path, l, 7, flake.Options{Clock: func() uint64 { return milli }})
			if err != nil {
				t.Fatal(err)
			}
			id, err := g.Next(t.Context())
			if err != nil || bytes.Compare(id[:], last[:]) <= 0 {
				t.Errorf("%s: %x after %x, %v", name, id, last, err)
			}
			last = id
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			milli++
		}
		milli -= 60_000 // more than a start waits for
		if _, err := Open[anID](t.Context(), path, l, 7, flake.Options{Clock: func() uint64 { return milli }}); err == nil {
			t.Errorf("%s: Open succeeded with the clock behind the mark", name)
		}
	}
}

// bound is a bound that ended before the test's time and cannot be raised.
type bound struct{ error }

func (bound) After() uint64                          { return 0 }
func (bound) Milli() uint64                          { return 1_600_000_000_000 }
func (b bound) Extend(context.Context, uint64) error { return b.error }

func TestBoundIsHandedOn(t *testing.T) {
	for name, l := range layouts {
		b := bound{errors.New("it cannot be raised")}
		o := flake.Options{Clock: func() uint64 { return 1_700_000_000_000 }, Bound: b}
		g, err := Open[anID](t.Context(), filepath.Join(t.TempDir(), "timestamp"), l, 7, o)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := g.Next(t.Context()); !errors.Is(err, b.error) {
			t.Errorf("%s: %x, %v", name, id, err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBounds(t *testing.T) {
	for name, l := range layouts {
		for at, milli := range map[time.Time]uint64{
			time.UnixMilli(-1):                            0,
			time.Unix(math.MinInt64, 0):                   0,
			time.UnixMilli(1_700_000_000_000):             1_700_000_000_000,
			time.Unix(1_700_000_000, 999_999):             1_700_000_000_000,
			time.UnixMilli(MaxMilli):                      MaxMilli,
			time.UnixMilli(MaxMilli + 1):                  MaxMilli,
			time.Unix(1<<63-62135596801, 999_999_999):     MaxMilli,
			time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC): 0,
		} {
			low, _ := l.Make(milli, 0, 0, 0)
			high, _ := l.Make(milli, flake.MaxWorker, 1<<l.Sequence-1, 1<<l.Random-1)
			if got := l.Lowest(at); got != low {
				t.Errorf("%s: the lowest at %v is %x, want %x", name, at, got, low)
			}
			if got := l.Highest(at); got != high {
				t.Errorf("%s: the highest at %v is %x, want %x", name, at, got, high)
			}
		}
	}
}

// Until the ids for runs are used up, each sequence is used once in a millisecond. Single ids and
// those of NextN have different random bits; all ids of a run have the same random bits.
func TestRuns(t *testing.T) {
	for name, l := range layouts {
		milli := uint64(1_700_000_000_000)
		g, err := New[anID](l, flake.MaxWorker, flake.Options{Clock: func() uint64 { return milli }})
		if err != nil {
			t.Fatal(err)
		}
		if run, err := g.Reserve(t.Context(), 0); run.Count != 0 || err == nil {
			t.Errorf("%s: 0 ids: %v, %v", name, run, err)
		}
		var ids []anID
		random, bits := map[uint16]bool{}, uint16(0)
		for len(ids) < g.PerTick() {
			some := make([]anID, min(100, g.PerTick()-len(ids)))
			switch len(ids) / 100 % 3 {
			case 0:
				some = some[:1]
				if some[0], err = g.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 1:
				if n, err := g.NextN(t.Context(), some); n != len(some) || err != nil {
					t.Fatal(n, err)
				}
			case 2:
				run, err := g.Reserve(t.Context(), len(some))
				if run.Count != len(some) || err != nil {
					t.Fatal(run.Count, err)
				}
				for i := range some {
					if some[i] = run.At(i); l.RandomOf(some[i]) != l.RandomOf(run.First) {
						t.Fatalf("%s: %x in the run of %x", name, some[i], run.First)
					}
				}
			}
			ids = append(ids, some...)
		}
		for i, id := range ids {
			if Milli(id) != milli || int(l.SequenceOf(id)) != i || l.Worker(id) != flake.MaxWorker ||
				i > 0 && flake.ID(id).Compare(flake.ID(ids[i-1])) <= 0 {
				t.Fatalf("%s: id %d is %x", name, i, id)
			}
			random[l.RandomOf(id)] = true
			bits |= l.RandomOf(id)
		}
		if len(random) < g.PerTick()/4 || bits != 1<<l.Random-1 {
			t.Errorf("%s: %d ids have only %d different random bits", name, len(ids), len(random))
		}
		if at, last := g.Last(); at != milli || int(last) != g.PerTick()-1 || g.Worker() != flake.MaxWorker {
			t.Errorf("%s: the last is %d:%d", name, at, last)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if run, err := g.Reserve(ctx, 1); err == nil || run != (flake.RunOf[anID]{}) {
			t.Errorf("%s: Reserve returned %v after the ids for runs were used up, %v", name, run, err)
		}
		testBeyond(t, name, l, g, ids[len(ids)-1])
		if n, err := g.NextN(ctx, make([]anID, 2)); n != 0 || err == nil {
			t.Errorf("%s: NextN made %d ids after all were used up, %v", name, n, err)
		}
		milli++
		if run, err := g.Reserve(ctx, 2); run.Count != 2 || err != nil || l.SequenceOf(run.First) != 0 {
			t.Errorf("%s: %v in the next millisecond, %v", name, run, err)
		}
	}
}

// testBeyond makes all ids that a millisecond has in addition to those that runs can contain. They
// have the last sequence, which runs do not use, and each value of the random bits once.
func testBeyond(t *testing.T, name string, l Layout, g *Generator[anID], last anID) {
	milli, ids := Milli(last), make([]anID, l.PerMilli-l.InRuns)
	done := 0
	for ; done < len(ids)/2; done++ {
		var err error
		if ids[done], err = g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := g.NextN(t.Context(), ids[done:]); n != len(ids)-done || err != nil {
		t.Fatal(n, err)
	}
	for i, id := range ids {
		if want, err := l.Make(milli, flake.MaxWorker, 1<<l.Sequence-1, uint16(i)); id != want || err != nil ||
			flake.ID(id).Compare(flake.ID(last)) <= 0 || int(l.SequenceOf(id)) < l.InRuns {
			t.Fatalf("%s: id %d beyond the sequences is %x, want %x", name, i, id, want)
		}
		last = id
	}
	if at, sequence := g.Last(); at != milli || sequence != 1<<l.Sequence-1 {
		t.Errorf("%s: the last is %d:%d", name, at, sequence)
	}
}

// NextN continues in the next millisecond.
func TestNextN(t *testing.T) {
	for name, l := range layouts {
		milli := uint64(1_700_000_000_000)
		g, err := New[anID](l, 7, flake.Options{Clock: func() uint64 { milli++; return milli }})
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]anID, l.PerMilli+2)
		if n, err := g.NextN(t.Context(), ids); n != len(ids) || err != nil {
			t.Fatalf("%s: %d of %d ids, %v", name, n, len(ids), err)
		}
		for i, id := range ids[1:] {
			if last := ids[i]; flake.ID(id).Compare(flake.ID(last)) <= 0 ||
				i+1 >= l.PerMilli && int(l.SequenceOf(id)) != i+1-l.PerMilli {
				t.Fatalf("%s: id %d is %x after %x", name, i+1, id, last)
			}
		}
	}
}

// simulated simulates generators that make single ids and runs. Tests of package flake show that
// such simulations find errors.
func simulated(l Layout) simulate.Config {
	c := simulate.Kept(func(m *simulate.Machine) (simulate.Generator, error) {
		g, err := New[anID](l, 7, flake.Options{Clock: m.NewClock()})
		if err != nil {
			return simulate.Generator{}, err
		}
		return simulate.Generator{Source: g.ids, IDs: func(count int, got simulate.Got) error {
			for count > 0 {
				run := flake.RunOf[anID]{Count: 1}
				var err error
				if count%3 == 0 {
					run, err = g.Reserve(context.Background(), count)
				} else {
					run.First, err = g.Next(context.Background())
				}
				if err != nil {
					return err
				}
				if run.Count < 1 {
					panic("a run without ids")
				}
				for i := range run.Count {
					id := run.At(i)
					got(Milli(id), uint32(placeOf(l, id)))
				}
				count -= run.Count
			}
			return nil
		}}, nil
	})
	c.PerTick = l.PerMilli
	return c
}

// placeOf returns the index of an id in its millisecond.
func placeOf(l Layout, id [16]byte) int {
	if sequence := int(l.SequenceOf(id)); sequence < l.InRuns {
		return sequence
	}
	return l.InRuns + int(l.RandomOf(id))
}

func TestSimulate(t *testing.T) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) { simulate.Check(t, simulated(l), 50) })
	}
}
