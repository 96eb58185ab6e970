package client

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/formats"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/idserver"
	"github.com/flake-go/flake/idserver/iderl"
	"github.com/flake-go/flake/idserver/idhttp"
	"github.com/flake-go/flake/node"
	"github.com/flake-go/flake/node/epmd"
)

const worker = flake.Worker(0x020000000001)

var quiet = slog.New(slog.DiscardHandler)

// flakes is a generator for both doors.
type flakes struct {
	*node.Node
	behind atomic.Int64 // milliseconds by which its clock is behind the machine's
	server *idserver.Server
}

func startFlakes(t *testing.T) *flakes {
	t.Helper()
	return startWorker(t, worker)
}

func startWorker(t *testing.T, worker flake.Worker) *flakes {
	t.Helper()
	f := new(flakes)
	system := flake.SystemClock()
	ids, err := flake.NewGenerator(worker,
		flake.Options{Clock: func() uint64 { return system() - uint64(f.behind.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	f.serve(t, formats.Flake(ids))
	return f
}

func (f *flakes) serve(t *testing.T, source formats.Source) {
	t.Helper()
	f.server = &idserver.Server{IDs: source}
	var err error
	f.Node, err = node.Start(t.Context(), node.Options{
		Name: name, Cookie: cookie, Keeper: &epmd.Keeper{Mode: epmd.Off}, Log: quiet,
		Supervisors: []node.Supervisor{{Name: "sup", Children: []node.Child{{Name: "flake",
			Handler: &iderl.Handler{Server: f.server, Log: quiet}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
}

func (f *flakes) doors(t *testing.T) map[string]Door {
	t.Helper()
	web := httptest.NewServer(idhttp.New(idhttp.Options{
		Generators: []idhttp.Generator{{Name: "flake", Server: f.server}}, Log: quiet,
	}))
	t.Cleanup(web.Close)
	h, err := NewHTTP(web.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := NewNode(name, Dialer{Cookie: cookie, Addr: f.Addr().String()})
	t.Cleanup(func() {
		n.Close()
		h.Close()
	})
	return map[string]Door{"distribution": n, "HTTP": h}
}

func TestIDs(t *testing.T) {
	noLeak(t)
	for what, door := range startFlakes(t).doors(t) {
		t.Run(what, func(t *testing.T) { testIDs(t, NewIDs[flake.ID](door, "flake")) })
	}
}

func testIDs(t *testing.T, ids *IDs[flake.ID]) {
	ctx := t.Context()
	var all []flake.ID
	check := func(what string, got []flake.ID, want int, err error) {
		t.Helper()
		if err != nil || len(got) != want {
			t.Fatalf("%s: %d ids, %v, want %d", what, len(got), err, want)
		}
		all = append(all, got...)
	}
	for range 3 {
		id, err := ids.Next(ctx)
		check("Get", []flake.ID{id}, 1, err)
	}
	for _, n := range []int{1, 2, maxMany + 1, maxLease + 1} {
		many := make([]flake.ID, n)
		filled, err := ids.NextN(ctx, many)
		check("NextN", many[:filled], n, err)

		runs, err := ids.Lease(ctx, n)
		var leased []flake.ID
		for _, r := range runs {
			if r.At(r.Count-1).Sequence()-r.First.Sequence() != uint16(r.Count-1) {
				t.Errorf("a run from %v to %v has the count %d", r.First, r.At(r.Count-1), r.Count)
			}
			leased = slices.AppendSeq(leased, r.All())
		}
		check("Lease", leased, n, err)
	}
	for _, tt := range []struct{ n, base int }{{1, 62}, {maxMany + 1, 36}, {2, 2}} {
		texts, err := ids.Texts(ctx, tt.n, tt.base)
		var parsed []flake.ID
		for _, text := range texts {
			id, err := flake.ParseBase(text, tt.base)
			if err != nil {
				t.Error(err)
			}
			parsed = append(parsed, id)
		}
		check("Texts", parsed, tt.n, err)
	}
	for i, id := range all {
		if i > 0 && id.Compare(all[i-1]) <= 0 {
			t.Fatalf("%v after %v", id, all[i-1])
		}
		if id.Worker() != worker {
			t.Fatalf("%v has another worker", id)
		}
	}
}

// sno has metabytes and its own text form.
func TestSno(t *testing.T) {
	source, err := sno.NewGenerator(nil, sno.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := new(flakes)
	f.serve(t, formats.Sno(source))
	for what, door := range f.doors(t) {
		ids := NewIDs[sno.ID](door, "flake")
		if id, err := ids.Next(t.Context()); err != nil || id.Partition() != source.Partition() ||
			id.WithMeta(7).Meta() != 7 {
			t.Errorf("%s: %v, %v", what, id, err)
		}
		runs, err := ids.Lease(t.Context(), 3)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if r := (Run[sno.ID]{runs[0].First.WithMeta(7),
			runs[0].Count}); r.At(r.Count-1) != runs[0].At(r.Count-1).WithMeta(7) {
			t.Errorf("%s: %v is not %v with another metabyte", what, r, runs[0])
		}
		texts, err := ids.Texts(t.Context(), 1, Canonical)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if id, err := sno.Parse(texts[0]); err != nil || id.String() != texts[0] {
			t.Errorf("%s: %s, %v", what, texts[0], err)
		}
	}
}

func TestLookups(t *testing.T) {
	first := time.UnixMilli(1_700_000_000_000)
	last := first.Add(time.Second)
	lowest := flake.Make(uint64(first.UnixMilli()), 0, 0)
	highest := flake.Make(uint64(last.UnixMilli()), flake.MaxWorker, math.MaxUint16)
	for what, door := range startFlakes(t).doors(t) {
		ids := NewIDs[flake.ID](door, "flake")
		if got, err := ids.Notional(t.Context(), first.Add(time.Microsecond)); err != nil || got != lowest {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		if got, err := ids.Notional(t.Context(), time.Unix(0, 0)); err != nil || got != (flake.ID{}) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		if l, h, err := ids.Span(t.Context(), first, last); err != nil || l != lowest || h != highest {
			t.Errorf("%s: %v, %v, %v", what, l, h, err)
		}
		got, err := ids.Decompose(t.Context(), flake.Make(17, worker, 4))
		want := []Field{{"time", 17}, {"worker", uint64(worker)}, {"sequence", 4}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	now := time.Now()
	for what, door := range startFlakes(t).doors(t) {
		ids := NewIDs[flake.ID](door, "flake")
		for _, tt := range []struct {
			what string
			call func(context.Context) error
		}{
			{"Lease, none", func(ctx context.Context) error { _, err := ids.Lease(ctx, 0); return err }},
			{"Lease, less", func(ctx context.Context) error { _, err := ids.Lease(ctx, -1); return err }},
			{"Texts, none", func(ctx context.Context) error { _, err := ids.Texts(ctx, 0, 62); return err }},
			{"Texts, base 1", func(ctx context.Context) error { _, err := ids.Texts(ctx, 1, 1); return err }},
			{"Texts, base 63", func(ctx context.Context) error { _, err := ids.Texts(ctx, 1, 63); return err }},
			{"Notional, 1969",
				func(ctx context.Context) error { _, err := ids.Notional(ctx, time.UnixMilli(-1)); return err }},
			{"Notional, before all time", func(ctx context.Context) error {
				_, err := ids.Notional(ctx, time.Unix(-1<<61, 0))
				return err
			}},
			{"Notional, beyond all time", func(ctx context.Context) error {
				_, err := ids.Notional(ctx, time.Unix(1<<61, 0))
				return err
			}},
			{"Notional, just beyond the limit", func(ctx context.Context) error {
				_, err := ids.Notional(ctx, time.Unix(math.MaxInt64/1000, 0))
				return err
			}},
			{"Span, from 1969",
				func(ctx context.Context) error { _, _, err := ids.Span(ctx, time.UnixMilli(-1), now); return err }},
			{"Span, 1969", func(ctx context.Context) error {
				_, _, err := ids.Span(ctx, time.Unix(0, 0), time.UnixMilli(-1))
				return err
			}},
			{"Span, back",
				func(ctx context.Context) error { _, _, err := ids.Span(ctx, now, now.Add(-time.Second)); return err }},
			{"Leased, size -1",
				func(context.Context) error { _, err := ids.Leased(LeaseOptions{Size: -1}); return err }},
			{"Leased, size",
				func(context.Context) error { _, err := ids.Leased(LeaseOptions{Size: MaxLeaseSize + 1}); return err }},
			{"Leased, age -1",
				func(context.Context) error { _, err := ids.Leased(LeaseOptions{MaxAge: -1}); return err }},
			{"Leased, age",
				func(context.Context) error { _, err := ids.Leased(LeaseOptions{MaxAge: MaxLeaseAge + 1}); return err }},
		} {
			if err := tt.call(t.Context()); !errors.Is(err, ErrBadArgument) {
				t.Errorf("%s: %s: %v", what, tt.what, err)
			}
		}
	}
}

func TestFailures(t *testing.T) {
	f := startFlakes(t)
	for what, door := range f.doors(t) {
		ids := NewIDs[flake.ID](door, "flake")
		if _, err := NewIDs[snowflake.ID](door, "flake").Next(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "16 bytes") {
			t.Errorf("%s: ids of another size: %v", what, err)
		}
		if n, err := ids.NextN(t.Context(), nil); n != 0 || err != nil {
			t.Errorf("%s: NextN of no ids: %d, %v", what, n, err)
		}
		if _, err := NewIDs[snowflake.ID](door, "flake").Lease(t.Context(), 1); err == nil ||
			!strings.Contains(err.Error(), "another format") {
			t.Errorf("%s: runs of ids of another size: %v", what, err)
		}
		if _, err := NewIDs[flake.ID](door, "nobody").Next(t.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("%s: an unknown generator: %v", what, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ids.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a canceled context: %v", what, err)
		}
		if _, err := ids.Next(t.Context()); err != nil {
			t.Error(err)
		}
		f.behind.Store(time.Hour.Milliseconds()) // more than the time since the last id
		if _, err := ids.Next(t.Context()); !errors.Is(err, flake.ErrClockBackwards) {
			t.Errorf("%s: after the clock is set back: %v", what, err)
		}
		f.behind.Store(0)
	}
}

// odd is a door with answers that no node sends.
type odd struct {
	Door
	err             error
	runs            []run
	strings         []string
	lowest, highest []byte
}

func oddRun(first uint64, count int) run {
	return run{binary.BigEndian.AppendUint64(nil, first), count}
}

func (o *odd) ask(_ context.Context, r request) (answer, error) {
	ids := [][]byte{o.lowest, o.highest}
	return answer{runs: o.runs, texts: o.strings, ids: ids[:len(r.millis)]}, o.err
}

// An answer with fewer or more ids than requested is refused, because ids could otherwise be
// returned twice.
func TestOddAnswers(t *testing.T) {
	for _, tt := range []struct {
		runs []run
		with string
	}{
		{nil, "0"},
		{[]run{oddRun(1, 1)}, "1"},
		{[]run{oddRun(1, 3)}, "a run of 3"},
		{[]run{oddRun(1, 0), oddRun(1, 2)}, "a run of 0"},
		{[]run{oddRun(9, -1), oddRun(1, 3)}, "a run of -1"},
		{[]run{oddRun(1, 1), oddRun(2, 2)}, "a run of 2"},
	} {
		if got, err := NewIDs[snowflake.ID](&odd{runs: tt.runs}, "ids").Lease(t.Context(), 2); err == nil ||
			!strings.Contains(err.Error(), "requested 2 ids") || !strings.HasSuffix(err.Error(), " with "+tt.with) {
			t.Errorf("%v: %v, %v", tt.runs, got, err)
		}
	}
	other := NewFailover(&odd{runs: []run{oddRun(0, 1)}}) // which passes on ids of any size
	if _, err := NewIDs[flake.ID](other, "ids").Next(t.Context()); err == nil || errors.Is(err, ErrNotAbove) {
		t.Errorf("an id of another size: %v", err)
	}
	for _, texts := range [][]string{nil, {"1"}, {"1", "2", "3"}, {"\x1b1", "2"}} {
		if got, err := NewIDs[snowflake.ID](&odd{strings: texts}, "ids").Texts(t.Context(), 2, 10); err == nil {
			t.Errorf("%q: %q", texts, got)
		}
	}
	eight, nine := make([]byte, 8), make([]byte, 9)
	for _, door := range []*odd{{lowest: nine, highest: eight}, {lowest: eight, highest: nine}} {
		if _, _, err := NewIDs[snowflake.ID](door, "ids").Span(t.Context(), time.Now(), time.Now()); err == nil {
			t.Errorf("the bounds %v and %v are accepted", door.lowest, door.highest)
		}
	}
	down := errors.New("down")
	ids := NewIDs[snowflake.ID](&odd{err: down}, "ids")
	_, err1 := ids.Lease(t.Context(), 1)
	_, err2 := ids.Texts(t.Context(), 1, 10)
	_, err3 := ids.Notional(t.Context(), time.Now())
	_, _, err4 := ids.Span(t.Context(), time.Now(), time.Now())
	_, err5 := ids.Next(t.Context())
	_, err6 := ids.NextN(t.Context(), make([]snowflake.ID, 1))
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if err != down {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// The ids of an answer must be above those of the previous answer, and its runs must ascend.
func TestNotAbove(t *testing.T) {
	const milli = 1_700_000_000_000
	flakes := []struct {
		at, count int
		want      error
	}{
		{1, 10, nil}, {5, 1, ErrNotAbove}, {10, 1, ErrNotAbove}, {11, 5, nil}, {15, 9, ErrNotAbove}, {16, 1, nil},
	}
	door := new(odd)
	ids := NewIDs[flake.ID](door, "ids")
	lease := func(runs ...run) error {
		n := 0
		for _, r := range runs {
			n += r.count
		}
		door.runs = runs
		_, err := ids.Lease(t.Context(), n)
		return err
	}
	of := func(sequence uint16, count int) run {
		id := flake.Make(milli, worker, sequence)
		return run{id[:], count}
	}
	for _, tt := range flakes {
		if err := lease(of(uint16(tt.at), tt.count)); !errors.Is(err, tt.want) {
			t.Errorf("%d ids from %d on: %v, want %v", tt.count, tt.at, err, tt.want)
		}
	}
	for _, tt := range []struct {
		second uint16
		want   error
	}{{24, ErrNotAbove}, {25, nil}} {
		if err := lease(of(20, 5), of(tt.second, 1)); !errors.Is(err, tt.want) {
			t.Errorf("a run from 20 to 24, and one from %d on: %v, want %v", tt.second, err, tt.want)
		}
	}
}

// Texts may return ids of a format other than ID's, because `flake get` asks any generator. Their
// order is not checked: here, that of snowflakes with random_start.
func TestTextsOfOthers(t *testing.T) {
	door := &odd{strings: []string{strconv.Itoa(7<<22 + 9), strconv.Itoa(7<<22 + 3)}}
	ids := NewIDs[flake.ID](door, "ids")
	for _, base := range []int{10, Canonical} { // not flake's own text
		if _, err := ids.Texts(t.Context(), 2, base); err != nil {
			t.Errorf("base %d: %v", base, err)
		}
	}
	door.strings = []string{"19B76DAA8007001808000000001E345", "19B76DAA7007001808000000001E345"} // of uuidv7
	if _, err := NewIDs[flake.ID](NewFailover(door), "ids").Texts(t.Context(), 2, 16); err != nil {
		t.Error(err)
	}
}

// An id's text consists of letters, digits and hyphens.
func TestIsNoDigit(t *testing.T) {
	const digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for r := range rune(1 << 8) {
		if isNoDigit(r) == strings.ContainsRune(digits, r) {
			t.Errorf("%q: %t", r, isNoDigit(r))
		}
	}
}

// slower is a door that makes another call before it returns its first answer.
type slower struct {
	odd
	first func()
}

func (s *slower) ask(ctx context.Context, r request) (answer, error) {
	a, err := s.odd.ask(ctx, r)
	if first := s.first; first != nil {
		s.first = nil
		first()
	}
	return a, err
}

// A call that returns late does not lower the highest id.
func TestLateCall(t *testing.T) {
	door := new(slower)
	ids := NewIDs[flake.ID](door, "ids")
	next := func(sequence uint16) error {
		id := flake.Make(1_700_000_000_000, worker, sequence)
		door.runs = []run{{id[:], 1}}
		_, err := ids.Next(t.Context())
		return err
	}
	door.first = func() {
		if err := next(9); err != nil {
			t.Error(err)
		}
	}
	if err := next(5); err != nil {
		t.Error(err)
	}
	if err := next(7); !errors.Is(err, ErrNotAbove) {
		t.Errorf("the id 7 after 9: %v, want ErrNotAbove", err)
	}
}

// An id is sent over HTTP in base 16, even if all its digits are decimal.
func TestDecomposeDigits(t *testing.T) {
	source, err := snowflake.Twitter.NewGenerator(1, snowflake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := NewIDs[snowflake.ID](webDoor(t, formats.Snowflake(source)), "ids")
	fields, err := ids.Decompose(t.Context(), 0x1401002)
	want := []Field{{"time", snowflake.Twitter.Epoch + 5}, {"machine", 1}, {"sequence", 2}}
	if err != nil || !slices.Equal(fields, want) {
		t.Errorf("%v, %v", fields, err)
	}
}

// If a node is replaced at the same address by another whose clock is behind, all methods fail
// until the new node's ids are above the earlier ones.
func TestReplaced(t *testing.T) {
	methods := map[string]func(context.Context, *IDs[flake.ID]) error{
		"Next": func(ctx context.Context, ids *IDs[flake.ID]) error { _, err := ids.Next(ctx); return err },
		"NextN": func(ctx context.Context, ids *IDs[flake.ID]) error {
			_, err := ids.NextN(ctx, make([]flake.ID, 9))
			return err
		},
		"Lease": func(ctx context.Context, ids *IDs[flake.ID]) error { _, err := ids.Lease(ctx, 9); return err },
		"Texts": func(ctx context.Context, ids *IDs[flake.ID]) error { _, err := ids.Texts(ctx, 9, 62); return err },
		"Texts, canonical": func(ctx context.Context, ids *IDs[flake.ID]) error {
			_, err := ids.Texts(ctx, 9, Canonical)
			return err
		},
	}
	node := func(w flake.Worker, behind *atomic.Int64) Door {
		system := flake.SystemClock()
		ids, err := flake.NewGenerator(w,
			flake.Options{Clock: func() uint64 { return system() - uint64(behind.Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		return webDoor(t, formats.Flake(ids))
	}
	for what, take := range methods {
		var behind atomic.Int64
		address := &struct{ Door }{node(worker, &behind)}
		ids := NewIDs[flake.ID](address, "ids")
		if err := take(t.Context(), ids); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		address.Door = node(worker+1, &behind)
		behind.Store(time.Hour.Milliseconds())
		if err := take(t.Context(), ids); !errors.Is(err, ErrNotAbove) {
			t.Errorf("%s: %v", what, err)
		}
		behind.Store(-time.Minute.Milliseconds())
		if err := take(t.Context(), ids); err != nil {
			t.Errorf("%s, with the clock right again: %v", what, err)
		}
	}
}

// few is a generator that refuses requests for many ids.
type few struct {
	fake
	most int
}

func (f *few) ask(ctx context.Context, r request) (answer, error) {
	if r.n > f.most {
		return answer{}, ErrBadArgument
	}
	a, err := f.fake.ask(ctx, r)
	if r.verb == askTexts {
		a = answer{texts: slices.Repeat([]string{"1"}, r.n)}
	}
	return a, err
}

func TestFewAtOnce(t *testing.T) {
	door := &few{most: maxAny}
	ids := NewIDs[snowflake.ID](door, "few")
	if n, err := ids.NextN(t.Context(), make([]snowflake.ID, 5000)); n != 5000 || err != nil {
		t.Errorf("%d ids, %v", n, err)
	}
	if texts, err := ids.Texts(t.Context(), 5000, 62); len(texts) != 5000 || err != nil || door.last.Load() != 10_000 {
		t.Errorf("%d strings, %v, %d ids in all", len(texts), err, door.last.Load())
	}
	door.most = 0
	if _, err := ids.Lease(t.Context(), 5000); !errors.Is(err, ErrBadArgument) {
		t.Error(err)
	}
}
