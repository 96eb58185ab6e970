package snowflake

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// vectors are the examples in flake-idgen's documentation.
var vectors = []struct {
	time               uint64
	datacenter, worker int
	sequence           uint32
	id                 ID
}{
	{0x8c20543b0, 0, 0, 0, 0x02308150ec000000},
	{0x8c20543b1, 0, 0, 0, 0x02308150ec400000},
	{0x8c20543b1, 0, 0, 1, 0x02308150ec400001},
	{0x8c20543b1, 0, 0, 2, 0x02308150ec400002},
	{0x8c20543b1, 0, 0, 3, 0x02308150ec400003},
	{0x8c20c0335, 3, 1, 0, 0x02308300cd461000},
	{0x8c20c0335, 3, 1, 1, 0x02308300cd461001},
	{0b01010000_11100001_10101011_10111010_00010001_11, 7, 3, 0, 5828128208445124608},
}

// partsOf returns the parts of an id of the layout.
func partsOf(l Layout, id ID) Parts {
	p, err := l.Decompose(id)
	if err != nil {
		panic(err)
	}
	return p
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		want := Parts{v.time, Machine(v.datacenter<<5 | v.worker), v.datacenter, v.worker, v.sequence}
		if got := partsOf(Idgen, v.id); got != want {
			t.Errorf("%#x decodes as %+v, want %+v", uint64(v.id), got, want)
		}
		if got, err := Idgen.Make(v.time, want.Machine, v.sequence); got != v.id || err != nil {
			t.Errorf("%+v is %#x, %v, want %#x", want, uint64(got), err, uint64(v.id))
		}
		// A generator makes the same id.
		g, err := Idgen.NewGenerator(want.Machine, Options{Clock: func() uint64 { return v.time }})
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]ID, v.sequence+1)
		if _, err := g.NextN(t.Context(), ids); err != nil || ids[v.sequence] != v.id {
			t.Errorf("generated %#x, %v, want %#x", uint64(ids[v.sequence]), err, uint64(v.id))
		}
	}
}

func TestTwitter(t *testing.T) {
	// The first tweets with snowflake ids are from the day of the epoch.
	if got := time.UnixMilli(int64(Twitter.Epoch)).UTC().Format(time.RFC3339Nano); got != "2010-11-04T01:42:54.657Z" {
		t.Errorf("the epoch is %s", got)
	}
	id, err := Twitter.Make(Twitter.Epoch+1, 5, 7)
	if id != 1<<22|5<<12|7 || err != nil {
		t.Errorf("%#x, %v", uint64(id), err)
	}
	highest := ID(1<<63 - 1)
	p := partsOf(Twitter, highest)
	if back, err := Twitter.Make(p.Milli, p.Machine, p.Sequence); back != highest || err != nil ||
		p.Time().Year() != 2080 {
		t.Errorf("the highest id has the time %v, and round-trips to %v, %v", p.Time(), back, err)
	}
	if _, err := Twitter.Make(p.Milli+1, 0, 0); err == nil {
		t.Error("a millisecond after the last is accepted")
	}
}

func TestEverySplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, time := range []uint8{0, 1, 31, 40, 41, 42, 43, 46, 47, 63, 255} {
		for datacenter := range uint8(24) {
			for worker := range uint8(24) {
				for sequence := range uint8(24) {
					l := Layout{time, datacenter, worker, sequence, rng.Uint64N(1 << 41)}
					low := datacenter + worker + sequence
					good := 1 <= time && time <= 46 && low <= 22 && time+low <= 64 && time+sequence <= 63
					if err := l.Check(); (err == nil) != good {
						t.Fatalf("%+v: %v", l, err)
					}
					if !good {
						if id, err := l.Make(l.Epoch, 0, 0); err == nil {
							t.Fatalf("%+v is invalid, but makes %v", l, id)
						}
						_, _ = l.Decompose(ID(rng.Uint64())) // meaningless, but must not panic
						continue
					}
					milli := l.Epoch + rng.Uint64N(1<<time)
					machine, seq := Machine(rng.IntN(1<<(datacenter+worker))), uint32(rng.IntN(1<<sequence))
					id, err := l.Make(milli, machine, seq)
					want := Parts{milli, machine, int(machine >> worker), int(machine & (1<<worker - 1)), seq}
					if got := partsOf(l, id); got != want || err != nil {
						t.Fatalf("%+v: %v is %+v, %v, want %+v", l, id, got, err, want)
					}
					for bit := time + low; bit < 64; bit++ {
						got, err := l.Decompose(id | 1<<bit)
						if bits := fmt.Sprintf("%d bits", time+low); err == nil || !strings.Contains(err.Error(), bits) {
							t.Fatalf("%+v: %v with bit %d is %+v, %v, want an error with %s", l, id, bit, got, err, bits)
						}
					}
				}
			}
		}
	}
}

// With the highest machine, the first id of a layout has only the machine's bits set, and the last
// id all bits.
func TestExtremes(t *testing.T) {
	for _, l := range []Layout{
		Twitter, Idgen, {Time: 41, Sequence: 22}, {Time: 41, Worker: 22}, {Time: 41, Worker: 8, Sequence: 4},
		{Time: 1, Sequence: 1},
		{Time: 46, Worker: 5}, {Time: 31, Datacenter: 1, Worker: 2, Sequence: 3, Epoch: someTime},
		{Time: 46, Epoch: 1 << 40},
	} {
		highest := Machine(1)<<(l.Datacenter+l.Worker) - 1
		clock := &handClock{l.Epoch}
		g := newTest(t, l, highest, Options{Clock: clock.now})
		if id := next(t, g); id != ID(highest)<<l.Sequence {
			t.Errorf("%+v: the first id is %#x", l, uint64(id))
		}
		clock.milli = uint64(l.Last().UnixMilli())
		run, err := g.Reserve(t.Context(), 1<<l.Sequence)
		last := run.At(run.Count - 1)
		if err != nil || run.Count != 1<<l.Sequence || last != 1<<(l.Time+l.low())-1 {
			t.Errorf("%+v: the last id is %#x, in a run of %d, %v", l, uint64(last), run.Count, err)
		}
		if milli, sequence := g.Last(); milli != clock.milli || sequence != 1<<l.Sequence-1 {
			t.Errorf("%+v: the last id is %d:%d", l, milli, sequence)
		}
		newTest(t, l, 0, Options{Clock: clock.now}) // does not fail yet
		clock.milli++
		if id, err := g.Next(t.Context()); err == nil {
			t.Errorf("%+v: made an id after the last time: %v", l, id)
		}
		if g, err := l.NewGenerator(0, Options{Clock: clock.now}); err == nil ||
			!strings.Contains(err.Error(), "set more bits") {
			t.Errorf("%+v: NewGenerator after the last time: %v, %v", l, g, err)
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		milli    uint64
		machine  Machine
		sequence uint32
		says     string
	}{
		"before the epoch": {Twitter.Epoch - 1, 0, 0,
			"time 1288834974656 ms since 1970 is out of range: must be 1288834974657 to 3487858230208"},
		"after the last":    {Twitter.Epoch + 1<<41, 0, 0, "3487858230209 ms"},
		"machine too high":  {Twitter.Epoch, 1024, 0, "machine 1024"},
		"sequence too high": {Twitter.Epoch, 0, 4096, "sequence 4096 is out of range: must be 0 to 4095"},
	} {
		if id, err := Twitter.Make(c.milli, c.machine, c.sequence); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
	l := Layout{Time: 42, Worker: 10, Sequence: 12, Epoch: tick.MaxLast - 1<<42 + 1}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	last := fmt.Sprint("must be at most ", l.Epoch)
	l.Epoch++
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), last) {
		t.Errorf("with an epoch that is too late: %v", err)
	}
}

func TestSpan(t *testing.T) {
	first := time.UnixMilli(1_700_000_000_000)
	last := first.Add(time.Second)
	low, high := Twitter.Span(first, last)
	for _, c := range []struct {
		milli    uint64
		machine  Machine
		sequence uint32
		inside   bool
	}{
		{1_700_000_000_000, 0, 0, true},
		{1_700_000_001_000, 1023, 4095, true},
		{1_699_999_999_999, 1023, 4095, false},
		{1_700_000_001_001, 0, 0, false},
	} {
		id, err := Twitter.Make(c.milli, c.machine, c.sequence)
		if got := low <= id && id <= high; got != c.inside || err != nil {
			t.Errorf("%+v inside the span: %v, %v", c, got, err)
		}
	}
	if low != Twitter.Notional(first) {
		t.Errorf("the lowest id is %v, want the notional id", low)
	}
	for at, want := range map[time.Time]ID{
		time.UnixMilli(-1):                                     0,
		time.UnixMilli(int64(Twitter.Epoch) - 1):               0,
		time.UnixMilli(int64(Twitter.Epoch) + 1):               1 << 22,
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC):            (1<<41 - 1) << 22,
		time.UnixMilli(int64(Twitter.Epoch) + 1<<41).UTC():     (1<<41 - 1) << 22,
		time.UnixMilli(int64(Twitter.Epoch) + 1<<41 - 2).UTC(): (1<<41 - 2) << 22,
		time.Unix(math.MinInt64, 0):                            0,
		time.Unix(1<<63-62135596801, 999_999_999):              (1<<41 - 1) << 22, // the latest time.Time
	} {
		if got := Twitter.Notional(at); got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}
