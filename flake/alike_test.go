package flake_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flake-go/flake/flake"
	"github.com/flake-go/flake/flake/sno"
	"github.com/flake-go/flake/flake/snowflake"
	"github.com/flake-go/flake/flake/ulid"
	"github.com/flake-go/flake/flake/uuidv7"
)

// idOf is the method set that the ids of all formats share.
type idOf[ID any] interface {
	comparable
	String() string
	Text(base int) (string, error)
	Padded(base int) (string, error)
	AppendBase(dst []byte, base int) ([]byte, error)
	IsZero() bool
	Compare(ID) int
	Plus(i int) ID
	encoding.TextAppender
	encoding.TextMarshaler
	encoding.BinaryMarshaler
	driver.Valuer
}

type pointerTo[ID any] interface {
	*ID
	encoding.TextUnmarshaler
	encoding.BinaryUnmarshaler
	sql.Scanner
}

// generatorOf is the method set that the generators of all formats share.
type generatorOf[ID idOf[ID], S sequence] interface {
	flake.Nexter[ID]
	Reserve(ctx context.Context, n int) (flake.RunOf[ID], error)
	NextN(ctx context.Context, dst []ID) (int, error)
	CatchUp(ctx context.Context) error
	Ready() error
	Behind() time.Duration
	PerTick() int
	Waits() uint64
	Last() (milli uint64, sequence S)
	Mark() time.Time
	LastSaved() (time.Time, error)
	Close() error
}

type sequence interface{ uint16 | uint32 }

// format holds the functions of a format's package.
type format[ID idOf[ID], P pointerTo[ID], G generatorOf[ID, S], S sequence] struct {
	open      func(ctx context.Context, path string, clock func() uint64) (G, error)
	parse     func(text string) (ID, error)
	mustParse func(text string) ID
	parseBase func(text string, base int) (ID, error)
	width     func(base int) int
	zero      G
}

func TestAlike(t *testing.T) {
	t.Run("flake", format[flake.ID, *flake.ID, *flake.Generator, uint16]{
		func(ctx context.Context, path string, clock func() uint64) (*flake.Generator, error) {
			return flake.Open(ctx, path, 7, flake.Options{Clock: clock})
		}, flake.Parse, flake.MustParse, flake.ParseBase, flake.Width, new(flake.Generator),
	}.test)
	t.Run("snowflake", format[snowflake.ID, *snowflake.ID, *snowflake.Generator, uint32]{
		func(ctx context.Context, path string, clock func() uint64) (*snowflake.Generator, error) {
			return snowflake.Twitter.Open(ctx, path, 7, snowflake.Options{Clock: clock})
		}, snowflake.Parse, snowflake.MustParse, snowflake.ParseBase, snowflake.Width, new(snowflake.Generator),
	}.test)
	t.Run("sno", format[sno.ID, *sno.ID, *sno.Generator, uint16]{
		func(ctx context.Context, path string, clock func() uint64) (*sno.Generator, error) {
			return sno.Open(ctx, path, &sno.Snapshot{Partition: sno.Partition{0, 7}}, sno.Options{Clock: clock})
		}, sno.Parse, sno.MustParse, sno.ParseBase, sno.Width, new(sno.Generator),
	}.test)
	t.Run("uuidv7", format[uuidv7.ID, *uuidv7.ID, *uuidv7.Generator, uint16]{
		func(ctx context.Context, path string, clock func() uint64) (*uuidv7.Generator, error) {
			return uuidv7.Open(ctx, path, 7, uuidv7.Options{Clock: clock})
		}, uuidv7.Parse, uuidv7.MustParse, uuidv7.ParseBase, uuidv7.Width, new(uuidv7.Generator),
	}.test)
	t.Run("ulid", format[ulid.ID, *ulid.ID, *ulid.Generator, uint16]{
		func(ctx context.Context, path string, clock func() uint64) (*ulid.Generator, error) {
			return ulid.Open(ctx, path, 7, ulid.Options{Clock: clock})
		}, ulid.Parse, ulid.MustParse, ulid.ParseBase, ulid.Width, new(ulid.Generator),
	}.test)
}

func (f format[ID, P, G, S]) test(t *testing.T) {
	path, milli := filepath.Join(t.TempDir(), "timestamp"), uint64(1_700_000_000_000)
	clock := func() uint64 { return milli }
	var last ID
	for range 2 {
		g, err := f.open(t.Context(), path, clock)
		if err != nil {
			t.Fatal(err)
		}
		last = f.testGenerator(t, g, milli, last)
		f.testReserve(t, g)
		if other, err := f.open(t.Context(), path, clock); err == nil {
			t.Errorf("opening a file in use returned %v, want an error", other)
		}
		f.testClosed(t, g, milli)
		milli += 4
	}
	for _, id := range []ID{last, *new(ID)} {
		f.testText(t, id)
		f.testValue(t, id)
	}
	var none ID
	if last.IsZero() || !none.IsZero() || none.Compare(last) != -1 || last.Compare(last) != 0 {
		t.Errorf("IsZero or Compare is wrong for %v or %v", none, last)
	}
	f.testZero(t)
	f.testAllocation(t)
	t.Run("day ahead", f.testDayAhead)
}

func (f format[ID, P, G, S]) testGenerator(t *testing.T, g G, milli uint64, last ID) (id ID) {
	some := make([]ID, 3)
	first, err := g.Next(t.Context())
	if n, errN := g.NextN(t.Context(), some); n != len(some) ||
		errors.Join(err, errN, g.Ready(), g.CatchUp(t.Context())) != nil {
		t.Fatalf("NextN filled %d ids; Next: %v, NextN: %v", n, err, errN)
	}
	for _, id := range append([]ID{first}, some...) {
		if id.Compare(last) <= 0 {
			t.Errorf("%v after %v", id, last)
		}
		last = id
	}
	if at, sequence := g.Last(); at != milli || sequence != 3 || g.PerTick() < 4095 || g.Waits() != 0 ||
		g.Behind() != 0 {
		t.Errorf("the last id is %d:%d, with %d per tick, %d waits, %v behind",
			at, sequence, g.PerTick(), g.Waits(), g.Behind())
	}
	if at, err := g.LastSaved(); at.UnixMilli() != int64(milli) || err != nil || g.Mark() != at.Add(3*time.Second) {
		t.Errorf("last saved at %v, %v, with the mark at %v", at, err, g.Mark())
	}
	return last
}

func (f format[ID, P, G, S]) testClosed(t *testing.T, g G, milli uint64) {
	if err := errors.Join(g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
	if id, err := g.Next(t.Context()); !errors.Is(err, flake.ErrClosed) || !errors.Is(g.Ready(), flake.ErrClosed) {
		t.Errorf("after Close, Next returned %v, %v, and Ready %v", id, err, g.Ready())
	}
	if at, sequence := g.Last(); at != milli || sequence != 5 || g.Mark().UnixMilli() != int64(milli) {
		t.Errorf("after Close, the last id is %d:%d, and the mark is at %v", at, sequence, g.Mark())
	}
}

func (f format[ID, P, G, S]) testReserve(t *testing.T, g G) {
	for _, n := range []int{0, -1} {
		if run, err := g.Reserve(t.Context(), n); run.Count != 0 || err == nil {
			t.Errorf("Reserve of %d ids returned %d, %v", n, run.Count, err)
		}
	}
	if run, err := g.Reserve(t.Context(), 2); run.Count != 2 || err != nil {
		t.Errorf("Reserve of 2 ids returned %d, %v", run.Count, err)
	}
}

// A zero generator makes no ids and returns an error.
func (f format[ID, P, G, S]) testZero(t *testing.T) {
	g := f.zero
	id, err := g.Next(t.Context())
	n, errN := g.NextN(t.Context(), make([]ID, 2))
	run, errRun := g.Reserve(t.Context(), 2)
	if !id.IsZero() || n != 0 || run.Count != 0 || err == nil || errN == nil || errRun == nil || g.Ready() == nil {
		t.Errorf("Next: %v, %v; NextN: %d, %v; Reserve: %d, %v", id, err, n, errN, run.Count, errRun)
	}
	if _, sequence := g.Last(); sequence != 0 || g.Waits() != 0 || g.Behind() != 0 || g.PerTick() != 0 {
		t.Errorf("the last sequence is %d, with %d per tick, %d waits, %v behind",
			sequence, g.PerTick(), g.Waits(), g.Behind())
	}
	at, errSaved := g.LastSaved()
	if err := errors.Join(errSaved, g.CatchUp(t.Context()), g.Close(), g.Close()); err != nil || !g.Mark().IsZero() ||
		!at.IsZero() {
		t.Errorf("%v, with the mark at %v, saved at %v", err, g.Mark(), at)
	}
}

func (f format[ID, P, G, S]) testAllocation(t *testing.T) {
	g, err := f.open(t.Context(), filepath.Join(t.TempDir(), "timestamp"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids, text := make([]ID, 16), make([]byte, 0, 128)
	short, _ := id.Text(62)
	for name, do := range map[string]func(){
		"Next":       func() { g.Next(t.Context()) },
		"NextN":      func() { g.NextN(t.Context(), ids) },
		"Reserve":    func() { g.Reserve(t.Context(), 16) },
		"AppendText": func() { id.AppendText(text) },
		"AppendBase": func() { id.AppendBase(text, 62) },
		"ParseBase":  func() { f.parseBase(short, 62) },
	} {
		n := testing.AllocsPerRun(100, do)
		for range 9 { // a concurrent save of the mark allocates
			n = min(n, testing.AllocsPerRun(100, do))
		}
		if n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func (f format[ID, P, G, S]) testText(t *testing.T, id ID) {
	text, err1 := id.MarshalText()
	appended, err2 := id.AppendText([]byte("x"))
	data, err3 := json.Marshal(id)
	key, err4 := json.Marshal(map[ID]int{id: 1})
	own := id.String()
	if err := errors.Join(err1, err2, err3, err4); err != nil || string(text) != own || string(appended) != "x"+own ||
		string(data) != `"`+own+`"` || string(key) != `{"`+own+`":1}` {
		t.Errorf("%s: %s, %s, %s, %s, %v", own, text, appended, data, key, err)
	}
	var read, json1, parsed ID
	parsed, err := f.parse(own)
	if err := errors.Join(err, P(&read).UnmarshalText(text), json.Unmarshal(data, &json1)); err != nil || read != id ||
		json1 != id || parsed != id || f.mustParse(own) != id {
		t.Errorf("%s round-trips to %v, %v, %v, %v", own, read, json1, parsed, err)
	}
	for base := flake.MinBase; base <= flake.MaxBase; base++ {
		short, err1 := id.Text(base)
		long, err2 := id.Padded(base)
		appended, err3 := id.AppendBase([]byte("x"), base)
		back, err4 := f.parseBase(short, base)
		again, err5 := f.parseBase(long, base)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil || string(appended) != "x"+short ||
			len(long) != f.width(base) ||
			strings.Repeat("0", len(long)-len(short))+short != long || back != id || again != id {
			t.Errorf("%s in base %d: %s, %s, %s, and back %v, %v, %v",
				own, base, short, long, appended, back, again, err)
		}
	}
	for _, base := range []int{-1, 1, 63} {
		_, err1 := id.Text(base)
		_, err2 := id.Padded(base)
		appended, err3 := id.AppendBase([]byte("x"), base)
		_, err4 := f.parseBase("1", base)
		for _, err := range []error{err1, err2, err3, err4} {
			if !errors.Is(err, flake.ErrBase) || string(appended) != "x" || f.width(base) != 0 {
				t.Errorf("base %d: %v, %q", base, err, appended)
			}
		}
	}
}

// JSON null leaves the id unchanged; SQL NULL is an error.
func (f format[ID, P, G, S]) testValue(t *testing.T, id ID) {
	value, err1 := id.Value()
	data, err2 := id.MarshalBinary()
	var scanned, text, bytes, read ID
	if err := errors.Join(err1, err2, P(&scanned).Scan(value), P(&text).Scan(id.String()),
		P(&bytes).Scan([]byte(id.String())), P(&read).UnmarshalBinary(data)); err != nil ||
		scanned != id || text != id || bytes != id || read != id {
		t.Errorf("%v round-trips to %v, %v, %v, %v, %v", id, scanned, text, bytes, read, err)
	}
	for _, src := range []any{nil, "", []byte{}, []byte("-"), 1.5} {
		kept := id
		if err := P(&kept).Scan(src); err == nil || kept != id ||
			src == nil && !strings.Contains(err.Error(), "sql.Null") {
			t.Errorf("scanned %T: %v, %v", src, kept, err)
		}
		var of *flake.ScanError
		if err := P(new(ID)).Scan(src); errors.As(err, &of) != (src == nil || src == 1.5) ||
			of != nil && of.Value != src {
			t.Errorf("scanned %T: %v; only a wrong type gets a *flake.ScanError", src, err)
		}
	}
	kept, own := id, id.String()
	for _, bad := range []string{"", own[1:] + "-", strings.Repeat(own, 21)} {
		if err := P(&kept).UnmarshalText([]byte(bad)); !errors.As(err, new(*flake.ParseError)) || kept != id {
			t.Errorf("%q: %v, %v", bad, kept, err)
		}
		if with, ok := panics(func() { f.mustParse(bad) }).(*flake.ParseError); !ok {
			t.Errorf("%q: MustParse panics with %v", bad, with)
		}
	}
	for _, bad := range [][]byte{data[1:], append(data, 0)} {
		if err := P(&kept).UnmarshalBinary(bad); !errors.As(err, new(*flake.ParseError)) || kept != id {
			t.Errorf("%x: %v, %v", bad, kept, err)
		}
	}
	if err := json.Unmarshal([]byte("null"), &kept); err != nil || kept != id {
		t.Errorf("null: %v, %v", kept, err)
	}
	for _, bad := range []string{`1.5`, `""`, `{}`, `"-"`} {
		if err := json.Unmarshal([]byte(bad), &kept); err == nil || kept != id {
			t.Errorf("%s: %v, %v", bad, kept, err)
		}
	}
	var null sql.Null[ID]
	if err := null.Scan(nil); err != nil || null.Valid {
		t.Errorf("NULL: %+v, %v", null, err)
	}
}

func panics(do func()) (with any) {
	defer func() { with = recover() }()
	do()
	return nil
}
