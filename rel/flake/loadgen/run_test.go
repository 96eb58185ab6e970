package loadgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/client"
	"github.com/flake-go/flake/client/clienttest"
	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

func number(n uint64) formats.Number { return formats.Number{Lo: n} }

// until ends a run after a number of calls by all callers together.
func until(calls int64, end context.CancelFunc, take Taker) Taker {
	var made atomic.Int64
	return func(ctx context.Context) (ids, error) {
		if made.Add(1) > calls {
			end()
		}
		return take(ctx)
	}
}

// Each kind of call gets the number of ids that it asks for, in each format, without duplicates.
func TestRun(t *testing.T) {
	node := clienttest.New()
	defer node.Close()
	var all []Call
	for _, k := range formats.Kinds {
		plan, err := k.Plan(k.Numbered(nil, k.Numbers[0], 7))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := plan.Open(t.Context(), "", flake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		name := "of " + k.Name
		node.Add(name, ids)
		all = append(all, Call{name, k.Name, 1, 0}, Call{name, k.Name, 1000, 0}, Call{name, k.Name, 20, 36},
			Call{name, k.Name, 3, client.Canonical})
	}
	for _, c := range append(all, Call{"flake", "flake", 1, 62}) {
		const callers, calls = 4, 400
		ctx, end := context.WithCancel(t.Context())
		take := until(calls, end, c.Taker(node))
		told := false
		r, err := Run(ctx, Options{Takers: slices.Repeat([]Taker{take}, callers), Duration: time.Hour,
			Progress: func(Result) { told = true }})
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if p := r.Latency; r.Calls < calls-2*callers || r.Calls > calls || r.IDs != r.Calls*uint64(c.N) ||
			r.Compared != r.IDs+uint64(callers*c.N) || r.Twice != 0 ||
			len(r.Errors) != 0 || p["p50"] <= 0 || p["p50"] > p["p90"] || p["p90"] > p["p99"] || p["p99"] > p["p99.9"] ||
			p["p99.9"] > p["max"] || r.CallsPerS != float64(r.Calls)/r.Seconds || r.IDsPerS != float64(r.IDs)/r.Seconds ||
			r.Behind || told && r.Seconds < 1 {
			t.Errorf("%v: %+v", c, r)
		}
	}
}

func TestTwice(t *testing.T) {
	node := clienttest.New()
	defer node.Close()
	honest := Call{"flake", "flake", 1, 0}.Taker(node)
	ctx, end := context.WithCancel(t.Context())
	var calls atomic.Int64
	twice := formats.Number{Hi: 5, Lo: 6}
	r, err := Run(ctx, Options{Duration: time.Hour, Takers: slices.Repeat([]Taker{until(1000, end,
		func(ctx context.Context) (ids, error) {
			if n := calls.Add(1); n == 100 || n == 900 {
				return func(dst []span) ([]span, error) { return append(dst, span{twice, twice}), nil }, nil
			}
			return honest(ctx)
		})}, 3)})
	if err != nil || r.Twice != 1 || r.Example != twice {
		t.Errorf("%+v, %v", r, err)
	}
}

// Errors are counted by kind. Errors with arbitrary text count as separate kinds only up to a limit.
func TestErrors(t *testing.T) {
	node := clienttest.New()
	defer node.Close()
	honest := Call{"flake", "flake", 1, 0}.Taker(node)
	all := []error{nil, client.ErrLost, fmt.Errorf("node x: %w: y", flake.ErrTimestampNotSaved), client.ErrLost,
		errors.New("a text")}
	for i := range maxKinds {
		all = append(all, fmt.Errorf("text %d", i))
	}
	ctx, end := context.WithCancel(t.Context())
	i := -1
	r, err := Run(ctx, Options{Duration: time.Hour, Takers: []Taker{func(ctx context.Context) (ids, error) {
		if i++; i == len(all) {
			end()
		} else if err := all[i]; err != nil {
			return nil, err
		}
		return honest(ctx)
	}}})
	want := map[string]uint64{"connection lost": 2, "timestamp_not_saved": 1, "a text": 1, "others": 3}
	for i := range maxKinds - 3 {
		want[fmt.Sprintf("text %d", i)] = 1
	}
	if err != nil || !reflect.DeepEqual(r.Errors, want) || r.Calls != 0 {
		t.Errorf("%v, %+v, want errors %v", err, r, want)
	}
	node.Fail(flake.ErrClosed)
	if _, err := Run(t.Context(), Options{Duration: time.Hour, Takers: []Taker{honest, honest}}); !errors.Is(err,
		flake.ErrClosed) {
		t.Errorf("a node that does not answer at all: %v", err)
	}
}

// A call that is never answered counts toward the longest time, and as a call that was due.
func TestUnfinished(t *testing.T) {
	node := clienttest.New()
	defer node.Close()
	take := Call{"flake", "flake", 1, 0}.Taker(node)
	var calls atomic.Int64
	end, stop := context.WithCancel(t.Context())
	silent := func(ctx context.Context) (ids, error) {
		switch calls.Add(1) {
		case 1, 2: // before the run
			return take(ctx)
		case 4: // both wait
			stop()
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	r, err := Run(end, Options{Duration: time.Hour, Rate: 1e9, Takers: []Taker{silent, silent}})
	if err != nil || r.Unfinished != 2 || r.Calls != 0 || r.Latency["max"] == 0 || r.Latency["p99.9"] != 0 || !r.Behind {
		t.Errorf("%+v, %v", r, err)
	}
	o := Options{Rate: 1000, Takers: make([]Taker, 10)}
	for calls, want := range map[uint64]bool{9889: true, 9890: false, 10000: false} {
		if got := o.behind(calls, 10); got != want {
			t.Errorf("%d calls: behind is %v", calls, got)
		}
	}
	o.Rate = 0
	if o.behind(0, 1) {
		t.Error("behind without a rate")
	}
}

// With a fixed rate, a late call is measured from the time at which it was due.
func TestRate(t *testing.T) {
	end, cancel := context.WithCancel(t.Context())
	r := &run{Options: Options{Rate: 100, Takers: make([]Taker, 2)}, start: time.Now().Add(-time.Second), end: end}
	if due, ok := r.begin(1, 3); !ok || due != r.start.Add(70*time.Millisecond) {
		t.Errorf("late: due %v after the start, %v", due.Sub(r.start), ok)
	}
	before := time.Now()
	if due, ok := r.begin(0, 51); !ok || due.Before(r.start.Add(1020*time.Millisecond)) && due.Before(before) {
		t.Errorf("early: due %v after the start, %v", due.Sub(r.start), ok)
	}
	cancel()
	if _, ok := r.begin(0, 1e6); ok {
		t.Error("a call that is not yet due continues after the end")
	}
	if _, ok := r.begin(0, 0); ok {
		t.Error("a late call continues after the end")
	}
}

// At a very low rate, only the first call is due in this century.
func TestLowestRate(t *testing.T) {
	take := func(context.Context) (ids, error) {
		return func(spans []span) ([]span, error) { return spans, nil }, nil
	}
	r, err := Run(t.Context(), Options{Duration: 50 * time.Millisecond, Rate: 1e-10, Takers: []Taker{take, take}})
	if err != nil || r.Calls != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Percentiles are at most 1.6 % above those of the sorted times.
func TestLatency(t *testing.T) {
	r := &run{times: make(map[time.Duration]uint64)}
	if got := r.percentile(nil, 0.5); got != 0 {
		t.Errorf("without calls: %v, want 0", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 10_000 {
		all = append(all, time.Duration(random.ExpFloat64()*float64(time.Millisecond)))
		r.answered(all[len(all)-1], nil)
	}
	slices.Sort(all)
	times := slices.Sorted(maps.Keys(r.times))
	if len(times) > 1500 {
		t.Errorf("%d different times, want at most 1500", len(times))
	}
	for part, i := range map[float64]int{0.0001: 0, 0.5: 4999, 0.9: 8999, 0.99: 9899, 0.999: 9989, 1: 9999} {
		if got, want := r.percentile(times, part), all[i]; got < want || got > want+want/64+1 {
			t.Errorf("%v: %v, want %v", part, got, want)
		}
	}
	for n := range uint64(63) {
		for _, d := range []time.Duration{1<<n - 1, 1 << n, 1<<n + 1} {
			if up := roundUp(d); up < d || up > d+d/64 || roundUp(up) != up || roundUp(up+1) == up {
				t.Errorf("%d is rounded up to %d", d, up)
			}
		}
	}
}

// Random spans, adjacent, nested and overlapping, give the same counts as a set of numbers.
func TestSeen(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s := seen{most: maxSpans}
		set := make(map[uint64]bool)
		twice, all := uint64(0), uint64(0)
		for range 1 + random.IntN(40) {
			first, last := random.Uint64N(200), uint64(0)
			last = first + random.Uint64N(12)
			for n := first; n <= last; n++ {
				if all++; set[n] {
					twice++
				}
				set[n] = true
			}
			s.add([]span{{number(first), number(last)}})
			if random.IntN(3) == 0 {
				s.settle()
			}
		}
		s.settle()
		if s.compared != all || s.twice != twice || (twice > 0) != (s.example != formats.Number{}) {
			t.Fatalf("%d of %d ids repeated, want %d of %d", s.twice, s.compared, twice, all)
		}
		kept := uint64(0)
		for i, span := range s.spans {
			kept += span.count()
			if i > 0 && span.first.Lo <= s.spans[i-1].last.Lo+1 {
				t.Fatalf("the spans are not sorted, or not joined: %v", s.spans)
			}
		}
		if kept != uint64(len(set)) {
			t.Fatalf("%d numbers are kept, want %d", kept, len(set))
		}
	}
}

// Ids that are not consecutive are compared up to the limit, and then dropped.
func TestSeenFull(t *testing.T) {
	const most = 1000
	s := seen{most: most}
	for n := uint64(0); !s.full; n++ {
		if s.compared > 2*maxFresh {
			t.Fatal("seen never becomes full")
		}
		s.add([]span{{number(2 * n), number(2 * n)}})
	}
	was := s.compared
	if was <= most || was > most+maxFresh {
		t.Errorf("%d ids were compared before seen was full", was)
	}
	s.add([]span{{number(1), number(1)}})
	s.settle()
	if s.compared != was || len(s.fresh) != 0 {
		t.Error("ids are still added when seen is full")
	}
	var overflow seen
	overflow.add([]span{{formats.Number{Hi: 1}, formats.Number{Hi: 1, Lo: 5}},
		{formats.Number{Lo: ^uint64(0)}, formats.Number{Lo: ^uint64(0)}}})
	overflow.settle()
	if len(overflow.spans) != 1 || overflow.twice != 0 {
		t.Errorf("%v", overflow.spans)
	}
}

// Ids of uuidv7 and ulid are compared without their random bits, and consecutive ones are one span.
func TestPlace(t *testing.T) {
	id := uuidv7.MustParse("019b76da-a800-7001-8080-00000001e345")
	other := uuidv7.MustParse("019b76da-a800-7001-8080-00000001c001")
	next := uuidv7.MustParse("019b76da-a800-7003-8080-00000001ffff")
	s := seen{most: 10}
	s.add([]span{spanOf(id, 2, formatOf("uuidv7")), spanOf(next, 1, formatOf("uuidv7"))})
	if s.settle(); len(s.spans) != 1 || s.twice != 0 || s.compared != 3 {
		t.Errorf("%+v", s)
	}
	s.add([]span{spanOf(other, 1, formatOf("uuidv7"))})
	s.settle()
	if want := (formats.Number{Hi: 0x019b76daa8007001, Lo: 0x808000000001c000}); s.twice != 1 ||
		(Call{Format: "uuidv7"}).ID(s.example) != want {
		t.Errorf("%+v", s)
	}
	first := ulid.MustParse("01KDVDNA00000G40000000E8T5")
	ordinal := spanOf(first, 1, formatOf("ulid")).first
	if got, want := (Call{Format: "ulid"}).ID(ordinal), (formats.Number{Hi: 0x019b76daa8000001,
		Lo: 0x0200000000070000}); got != want || (Call{Format: "flake"}).ID(ordinal) != ordinal {
		t.Errorf("%x, want %x", got, want)
	}
}
