package formats

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// options returns valid options of a kind.
func options(k *Kind) Options { return k.Numbered(nil, k.Numbers[0], 7) }

// planned returns a kind's plan for valid options.
func planned(t *testing.T, k *Kind) Plan {
	t.Helper()
	p, err := k.Plan(options(k))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every kind is complete, and its format's fields are contiguous and end at the lowest bit.
func TestKinds(t *testing.T) {
	for i, k := range Kinds {
		f := k.Format(options(k))
		if KindOf(k.Name) != k || slices.Index(Names(), k.Name) != i || f.Name != k.Name || f.String() != k.Name {
			t.Errorf("kind %d is %s, of format %s", i, k.Name, f)
		}
		fields := f.Fields(Number{})
		end, width := fields[0].Offset, 0
		for _, field := range fields {
			if field.Offset != end {
				t.Errorf("%s: %s begins at %d, want %d", k.Name, field.Name, field.Offset, end)
			}
			end += field.Width
			width += field.Width
			if field.Name == "random" && f.random.Lo != 1<<field.Width-1 {
				t.Errorf("%s: the mask of the random bits is %x", k.Name, f.random.Lo)
			}
		}
		if k.Random() != (f.Size == 16) || f.Meta != (k == snos) {
			t.Errorf("%s: Random is %t, Meta is %t", k.Name, k.Random(), f.Meta)
		}
		for _, key := range k.Keys {
			if !slices.Contains(Keys(), key) {
				t.Errorf("%s is not in the list of keys", key.Name)
			}
		}
		if fields[0].Name != "time" || end != 8*f.Size || f.sequence == (Number{}) || f.random.Hi != 0 ||
			len(Who(fields)) == 0 || len(Who(fields)) == len(fields) {
			t.Errorf("%s has the fields %+v", k.Name, fields)
		}
		for _, keys := range k.Numbers {
			for _, key := range keys {
				if k.Key(key) == nil || !IsNumber(key) {
					t.Errorf("%s: %s sets the number, but is not one of the kind's keys", k.Name, key)
				}
			}
		}
	}
	named := map[string]bool{}
	for _, key := range Keys() {
		if key.Name == "" || key.Does == "" || named[key.Name] {
			t.Errorf("%+v has no name, no text, or the name of another key", key)
		}
		named[key.Name] = true
	}
	if KindOf("cuid") != nil || flakes.Key("id") != nil || IsNumber("meta") {
		t.Error("found a kind, key or number that does not exist")
	}
}

func TestWithKey(t *testing.T) {
	defer func(all []*Kind) { Kinds = all }(Kinds)
	Kinds = []*Kind{flakes, idgens, snowflakes, snos, uuidv7s, ulids}
	for key, want := range map[string]string{"partition": "sno", "epoch": "flake-idgen and snowflake",
		"worker_id": "flake, uuidv7 and ulid"} {
		if got := WithKey(key); got != want {
			t.Errorf("%s is a key of %s, want %s", key, got, want)
		}
	}
}

// With or without a file, ids have the generator's worker and the clock's time, and lie within the
// span of that time.
func TestOpen(t *testing.T) {
	const milli = 1_700_000_000_000
	for _, k := range Kinds {
		p := planned(t, k)
		marks, err := flake.OpenMarks(t.TempDir()+"/timestamp", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer marks.Close()
		for _, in := range []struct {
			path  string
			marks *flake.Marks
		}{{"", nil}, {t.TempDir() + "/timestamp", nil}, {"", marks}} {
			o := flake.Options{Clock: func() uint64 { return milli }, Marks: in.marks}
			g, err := p.Open(t.Context(), in.path, o)
			if err != nil {
				t.Fatal(err)
			}
			run, err := g.Reserve(t.Context(), 3, 9)
			low, high, errSpan := g.Format().Span(milli, milli)
			if err := errors.Join(err, errSpan); err != nil || run.Count != 3 || g.Worker() != p.Worker {
				t.Fatalf("%s: run %+v of worker %d, %v", k.Name, run, g.Worker(), err)
			}
			var last Number
			for i := range run.Count {
				id, who, at := run.At(i), uint64(0), map[string]uint64{}
				for _, f := range g.Format().Fields(id) {
					at[f.Name] = f.Value
				}
				for _, f := range Who(g.Format().Fields(id)) {
					who = who<<f.Width | f.Value
				}
				if at["time"] != milli || at["sequence"] != uint64(i) || who != p.Worker || g.Format().Meta && at["meta"] != 9 {
					t.Errorf("%s: id %d is %v", k.Name, i, at)
				}
				f := g.Format()
				ordinal := f.Ordinal(id)
				back := f.AtOrdinal(ordinal)
				if ordinal != f.Ordinal(run.First).Plus(i) || f.Ordinal(back) != ordinal || f.random == (Number{}) && back != id {
					t.Errorf("%s: id %d, %v, has ordinal %v, or AtOrdinal does not reverse it", k.Name, i, id, ordinal)
				}
				if id.Compare(low) < 0 || id.Compare(high) > 0 || id.Compare(last) <= 0 {
					t.Errorf("%s: id %v after %v, want ascending ids from %v to %v", k.Name, id, last, low, high)
				}
				last = id
			}
			drawn := uint64(0)
			for range 64 {
				drawn |= run.At(0).Lo ^ run.First.Lo
			}
			if f := g.Format(); drawn != f.random.Lo {
				t.Errorf("%s: the random bits are %x, want %x", k.Name, drawn, f.random.Lo)
			}
			if next, err := g.Reserve(t.Context(), 1, 9); err != nil || !run.FollowedBy(next) {
				t.Errorf("%s: %v, then %v, %v", k.Name, run, next, err)
			}
			kept := in.path != "" || in.marks != nil
			if at, sequence := g.Last(); at != milli || sequence != 3 || g.Mark().IsZero() == kept {
				t.Errorf("%s: the last id is %d:%d, and the mark is at %v", k.Name, at, sequence, g.Mark())
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			if _, err := g.Reserve(t.Context(), 1, 0); !errors.Is(err, flake.ErrClosed) {
				t.Errorf("%s: Reserve after Close: %v", k.Name, err)
			}
		}
		if g, err := p.Open(t.Context(), t.TempDir()+"/none/timestamp", flake.Options{}); err == nil || g != nil {
			t.Errorf("%s: opened %v in a directory that does not exist", k.Name, g)
		}
	}
}

// Span accepts the times that a format's bits can represent, and no others.
func TestSpan(t *testing.T) {
	for _, k := range Kinds {
		f := k.Format(options(k))
		first, last := f.Times()
		low, high, err := f.Span(first, last)
		if err != nil || low.Compare(high) >= 0 {
			t.Errorf("%s: %v to %v, %v", k.Name, low, high, err)
		}
		for _, id := range []Number{low, high} {
			if _, err := f.Parse(string(f.Append(nil, id, Canonical)), Canonical); err != nil {
				t.Errorf("%s: the bound %v is not an id", k.Name, id)
			}
		}
		for _, milli := range []uint64{first - 1, last + 1} {
			if _, _, err := f.Span(milli, milli); (err == nil) != (k == flakes) {
				t.Errorf("%s: %d: %v", k.Name, milli, err)
			}
		}
	}
}

// Only the next id of the same tick and generator continues a run. An id of the next tick does not,
// even if it is the next number. Random bits do not matter.
func TestFollowedBy(t *testing.T) {
	for _, k := range Kinds {
		f := k.Format(options(k))
		milli := f.Fields(Number{})[0].Value + 1e10
		low, _, err := f.Span(milli, milli)
		if err != nil {
			t.Fatal(err)
		}
		bit := func(field Field) Number { return Number{Lo: 1}.shifted(f.shift(&field)) }
		one := Number{Lo: 1}.shifted(f.step)
		// run is the second to last id of its tick.
		run := Run{low.add(Number{f.sequence.Hi &^ one.Hi, f.sequence.Lo &^ one.Lo}), 1, f}
		last := run.First.add(one)
		other, later := last.add(bit(Who(f.fields)[0])), last.add(bit(f.fields[0]))
		again := Number{last.Hi, last.Lo ^ f.random.Lo}
		for id, want := range map[Number]bool{last: true, again: true, other: false, later: false, run.First: false} {
			if run.FollowedBy(Run{id, 1, f}) != want {
				t.Errorf("%s: %v, then %v, want %t", f, run, id, want)
			}
		}
		run.Count = 2
		if next := (Run{run.At(2), 1, f}); run.FollowedBy(next) {
			t.Errorf("%s: %v, then %v", f, run, next)
		}
	}
	run := Run{Number{1, math.MaxUint64}, 1, nil}
	if !run.FollowedBy(Run{First: Number{2, 0}}) || run.FollowedBy(run) || run.At(2) != (Number{2, 1}) {
		t.Errorf("%v", run)
	}
}

// Numbered splits a number over the given keys. The places of different numbers do not overlap.
func TestNumbered(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		max  uint64
		who  string
	}{
		{"flake", []string{"worker_id"}, 65535, "01:00:00:00:01:27"},
		{"snowflake", []string{"id"}, 1023, "id 295"},
		{"flake-idgen", []string{"datacenter", "worker"}, 1023, "datacenter 9, worker 7"},
		{"sno", []string{"partition"}, 65535, "partition 295"},
		{"uuidv7", []string{"worker_id"}, 65535, "01:00:00:00:01:27"},
		{"ulid", []string{"worker_id"}, 65535, "01:00:00:00:01:27"},
	} {
		k := KindOf(tt.name)
		p, err := k.Plan(k.Numbered(nil, tt.keys, 295))
		if highest := k.MaxNumber(nil, tt.keys); err != nil || p.Who != tt.who || highest != tt.max {
			t.Errorf("%s: %s, %v, up to %d, want %s up to %d", tt.name, p.Who, err, highest, tt.who, tt.max)
		}
		other, err1 := k.Plan(k.Numbered(nil, tt.keys, 296))
		if err1 != nil || !p.Range.Overlaps(p.Range) || p.Range.Overlaps(other.Range) || other.Range.Overlaps(p.Range) {
			t.Errorf("%s: %+v and %+v, %v", tt.name, p.Range, other.Range, err1)
		}
	}
	if p, err := idgens.Plan(idgens.Numbered(nil, []string{"datacenter", "worker"}, 1024)); err == nil {
		t.Errorf("the number 1024 is accepted for 10 bits: %s", p.Who)
	}
	o := Options{"machine_bits": 20, "sequence_bits": 2}
	if highest := snowflakes.MaxNumber(o, []string{"id"}); highest != 65535 || len(o) != 2 {
		t.Errorf("with 20 bits, the highest number is %d, want 65535", highest)
	}
}

// Options set the bits of a snowflake. Places of layouts with different numbers of bits below the
// time never overlap.
func TestSnowflakeBits(t *testing.T) {
	bits := func(o Options) (string, Range) {
		o["id"] = 3
		p, err := snowflakes.Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		return p.Who, p.Range
	}
	_, usual := bits(Options{})
	_, other := bits(Options{"machine_bits": 10, "sequence_bits": 12})
	_, wide := bits(Options{"machine_bits": 2, "sequence_bits": 20})
	who, few := bits(Options{"time_bits": 40, "machine_bits": 9, "sequence_bits": 12})
	if who != "id 3, until 2045-09-06T21:36:42Z" || few.Last != 3<<12|4095 {
		t.Errorf("%s, up to %d", who, few.Last)
	}
	if !usual.Overlaps(other) || usual.Overlaps(wide) || wide.Last != 1<<22-1 ||
		usual.Overlaps(few) || few.Overlaps(wide) {
		t.Errorf("%+v, %+v, %+v", usual, wide, few)
	}
	idgen, err := idgens.Plan(Options{"id": 3})
	if err != nil || usual.Overlaps(idgen.Range) {
		t.Errorf("%+v, %+v, %v", usual, idgen.Range, err)
	}
	idgen, err = idgens.Plan(Options{"id": 3, "epoch": int64(snowflake.Twitter.Epoch)})
	if err != nil || !usual.Overlaps(idgen.Range) {
		t.Errorf("with the same epoch: %+v, %+v, %v", usual, idgen.Range, err)
	}
	if text := usual.String(); text != "id 3 (10 bits, epoch 1288834974657 ms)" {
		t.Error(text)
	}
	if usual.Space != "snowflake since 1288834974657" { // other releases use the same name
		t.Error(usual.Space)
	}
	if f := idgens.Format(Options{"epoch": 1}); f.Name != idgens.Name || f.Fields(Number{})[0].Value != 1 {
		t.Errorf("%s since 1: %+v", f, f.Fields(Number{}))
	}
	for _, tt := range []struct {
		o    Options
		want []Field
	}{
		{Options{"id": 3, "machine_bits": 8}, []Field{{"machine", 0, 42, 8}}},
		{Options{"worker": 3}, []Field{{"datacenter", 0, 42, 5}, {"worker", 0, 47, 5}}},
	} {
		if who := Who(snowflakes.Format(tt.o).Fields(Number{})); !slices.Equal(who, tt.want) {
			t.Errorf("%v: %+v, want %+v", tt.o, who, tt.want)
		}
	}
}

// If options conflict, the fault names one key and says what its value must be.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		kind      *Kind
		o         Options
		key, want string
	}{
		{snowflakes, Options{"machine_bits": 10, "sequence_bits": 12}, "", ""},
		{snowflakes, Options{"machine_bits": 8, "sequence_bits": 15}, "sequence_bits", "at most 14, "},
		{snowflakes, Options{"machine_bits": 8, "sequence_bits": 10, "time_bits": 45}, "", ""},
		{snowflakes, Options{"machine_bits": 8, "sequence_bits": 10, "time_bits": 46}, "time_bits", "at most 45, "},
		{snowflakes, Options{"machine_bits": 10, "worker": 1}, "", ""},
		{snowflakes, Options{"machine_bits": 12, "worker": 1}, "machine_bits", "set id"},
		{snowflakes, Options{"machine_bits": 12, "datacenter": 1}, "machine_bits", "set id"},
		{snowflakes, Options{"machine_bits": 12, "datacenter": 1, "id": 1}, "", ""},
		{snowflakes, Options{"machine_bits": 12}, "", ""},
		{snos, Options{"sequence_min": 7, "sequence_max": 8}, "", ""},
		{snos, Options{"sequence_min": 7, "sequence_max": 7}, "sequence_max", "sequence_min"},
		{snos, Options{"sequence_min": 7}, "", ""},
		{snos, Options{"sequence_max": 0}, "", ""},
	} {
		faults := tt.kind.Check(tt.o)
		if len(faults) > 1 || (len(faults) == 1) != (tt.key != "") ||
			tt.key != "" && (faults[0].Key != tt.key || !strings.Contains(faults[0].Want, tt.want)) {
			t.Errorf("%v: %q, want %s: %s", tt.o, faults, tt.key, tt.want)
		}
	}
}

// The formats of ids of 16 bytes differ in the first two bytes, and in version and variant. A run
// ends with the sequence.
func TestRoom(t *testing.T) {
	const milli, worker = 1_795_260_280_557, 1 << 47
	uuid, err1 := uuidv7.Make(milli, worker, 7, 9)
	other, err2 := ulid.Make(milli, worker, 7, 9)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		id                Number
		flake, uuid, ulid int
	}{
		{of128(flake.Make(milli, worker, 7)), 1<<16 - 7, 0, 0},
		{of128(flake.Make(7<<12, worker, 7)), 1<<16 - 7, 0, 0}, // like a uuidv7 of 1970
		{of128(uuid), 0, 1<<12 - 7, 1<<16 - 7<<12 - 7},         // a ulid may have any bits after the time
		{of128(other), 0, 0, 1<<16 - 7},
	} {
		got := []int{flakeFormat.Room(tt.id), uuidv7Format.Room(tt.id), ulidFormat.Room(tt.id)}
		if !slices.Equal(got, []int{tt.flake, tt.uuid, tt.ulid}) {
			t.Errorf("%x: %v, want %v", tt.id, got, tt)
		}
	}
}

// Which ids may follow a given id depends on the format.
func TestFollows(t *testing.T) {
	const milli, worker = 1_700_000_000_000, 1 << 47
	id := func(milli uint64, sequence uint16) Number { return of128(flake.Make(milli, worker, sequence)) }
	snowflakes := SnowflakeFormat(snowflake.Twitter)
	for _, tt := range []struct {
		what       string
		format     *Format
		last, next Number
		want       bool
	}{
		{"the first", flakeFormat, Number{}, Number{0, 1}, true},
		{"a flake", flakeFormat, id(milli, 7), id(milli, 8), true},
		{"the same flake", flakeFormat, id(milli, 7), id(milli, 7), false},
		{"a flake of 1970", flakeFormat, id(milli, 7), id(9, 8), false},
		{"a uuidv7", uuidv7Format, id(milli<<16, 7), id((milli+1)<<16, 7), true},
		{"an earlier uuidv7", uuidv7Format, id(milli<<16, 7), id((milli-1)<<16, 7), false},
		{"a snowflake with a random start", snowflakes, Number{Lo: 7<<22 + 9}, Number{Lo: 7<<22 + 3}, true},
		{"an earlier snowflake", snowflakes, Number{Lo: 7 << 22}, Number{Lo: 7<<22 - 1}, false},
		{"a sno after the clock was set back", snoFormat, Number{Hi: 1 << 14}, Number{Hi: 1 << 13}, true},
	} {
		if got := tt.format.Follows(tt.last, tt.next); got != tt.want {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}
