package durable

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/digits"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

const someTime = 1_700_000_000_000

// A bench holds a node's clock, file and log.
type bench struct {
	path   string
	clock  atomic.Uint64
	broken atomic.Bool // every write fails
	waited time.Duration
	nap    time.Duration // longest sleep, if not 0
	log    strings.Builder
	logMu  sync.Mutex
}

func newBench(t *testing.T) *bench {
	b := &bench{path: filepath.Join(t.TempDir(), "timestamp")}
	b.clock.Store(someTime)
	return b
}

func (b *bench) sleep(ctx context.Context, d time.Duration) error {
	if b.nap > 0 {
		d = min(d, b.nap)
	}
	b.waited += d
	b.clock.Add(uint64(d / time.Millisecond))
	return ctx.Err()
}

func (b *bench) Write(p []byte) (int, error) {
	b.logMu.Lock()
	defer b.logMu.Unlock()
	return b.log.Write(p)
}

func (b *bench) logged() string {
	b.logMu.Lock()
	defer b.logMu.Unlock()
	return b.log.String()
}

func (b *bench) options() Options {
	return Options{Logger: slog.New(slog.NewTextHandler(b, nil))}
}

// A node is a generator and its marker.
type node struct {
	*Marker
	ids *tick.Generator
}

type id struct {
	milli    uint64
	sequence int
}

func (a id) after(b id) bool {
	return a.milli > b.milli || a.milli == b.milli && a.sequence > b.sequence
}

func (n *node) try() (id, error) {
	milli, sequence, _, err := n.ids.Reserve(context.Background(), 1)
	return id{milli, sequence}, err
}

func (n *node) next(t *testing.T) id {
	t.Helper()
	id, err := n.try()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// alone is like Open, but does not keep the mark ahead.
func (b *bench) alone(ctx context.Context, disk mark.Disk, s Source, o Options) (*Marker, error) {
	m, err := OpenMarksOn(disk, b.sleep, b.path, o.Logger, 0)
	if err != nil {
		return nil, err
	}
	m.alone, o.Marks = true, m
	return OpenOn(ctx, "", s, o)
}

func (b *bench) ids() *tick.Generator {
	return digits.Must(tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << 16}, b.clock.Load))
}

func (b *bench) node(ctx context.Context, disk mark.Disk, o Options) (*node, error) {
	ids := b.ids()
	k, err := b.alone(ctx, disk, ids, o)
	if err != nil {
		return nil, err
	}
	return &node{k, ids}, nil
}

// disk is the real disk, but cannot be written while it is broken.
type disk struct {
	mark.OS
	broken *atomic.Bool
}

var errFull = errors.New("no space left")

func (d disk) Create(path string, data []byte) error {
	if d.broken.Load() {
		return errFull
	}
	return d.OS.Create(path, data)
}

func (d disk) Overwrite(path string, offset int64, data []byte) error {
	if d.broken.Load() {
		return errFull
	}
	return d.OS.Overwrite(path, offset, data)
}

func (b *bench) try(ctx context.Context) (*node, error) {
	return b.node(ctx, disk{broken: &b.broken}, b.options())
}

// open opens without the goroutine that keeps the mark ahead.
func (b *bench) open(t *testing.T) *node {
	t.Helper()
	d, err := b.try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.marks.file.Close() })
	return d
}

// kill ends a node like kill -9: nothing is written, and the lock is released.
func kill(d *node) { d.marks.file.Close() }

// content returns the content of the file.
func (b *bench) content(t *testing.T) mark.Content {
	t.Helper()
	data, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mark.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// saved returns the nameless mark in the file.
func (b *bench) saved(t *testing.T) uint64 {
	t.Helper()
	return b.content(t).Marks[""].Milli
}

func TestFirstStart(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	if got := b.saved(t); got != someTime+window || d.Mark().UnixMilli() != int64(got) {
		t.Errorf("the mark is %d in the file, %v in memory", got, d.Mark())
	}
	if got := d.next(t); got != (id{someTime, 0}) {
		t.Errorf("%v", got)
	}
	if b.waited != 0 || !strings.Contains(b.logged(), "starting a new one") {
		t.Errorf("waited %v, logged %q", b.waited, b.logged())
	}
	if at, err := d.LastSaved(); at.UnixMilli() != someTime || err != nil {
		t.Errorf("last saved %v, %v", at, err)
	}
}

func TestCleanStopNeedsNoWait(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	b.clock.Add(5)
	last := d.next(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if got := b.saved(t); got != last.milli {
		t.Errorf("the file has %d, the last id %d", got, last.milli)
	}
	if _, err := d.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := d.Renew(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := d.Close(); err != nil || b.saved(t) != last.milli {
		t.Errorf("a second Close: %v", err)
	}
	b.clock.Add(1)
	if id := b.open(t).next(t); !id.after(last) || b.waited != 0 {
		t.Errorf("%v after %v, waited %v", id, last, b.waited)
	}
}

// The millisecond of the last id is not used again, even if it has ids left.
func TestStartInTheSameMillisecond(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	last := d.next(t)
	d.Close()
	if id := b.open(t).next(t); id.milli != last.milli+1 || b.waited != time.Millisecond {
		t.Errorf("%v after %v, waited %v", id, last, b.waited)
	}
}

// Time without calls does not count as downtime.
func TestCleanStopWithoutAnID(t *testing.T) {
	b := newBench(t)
	b.open(t).Close()
	if got := b.saved(t); got != someTime {
		t.Errorf("the file has %d", got)
	}
	b.clock.Add(1)
	d := b.open(t)
	last := d.next(t)
	b.clock.Add(uint64(2 * DefaultDowntime / time.Millisecond))
	if err := d.Renew(); err != nil {
		t.Fatal(err)
	}
	d.Close()
	b.clock.Add(1)
	if id := b.open(t).next(t); !id.after(last) || b.waited != 0 {
		t.Errorf("%v after %v, waited %v", id, last, b.waited)
	}
}

// Whatever the clock says when a node stops, the mark is not before the last id.
func TestCleanStopWithTheClockBehind(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	last := d.next(t)
	b.clock.Store(1)
	d.Close()
	if got := b.saved(t); got != last.milli {
		t.Errorf("the file has %d, the last id %d", got, last.milli)
	}
}

func TestCrashIsWaitedOut(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	d.next(t)
	b.clock.Add(window) // up to the mark itself
	last := d.next(t)
	kill(d)
	b.clock.Store(someTime + 1) // the clock is set back
	b.nap = time.Second         // woken early, it sleeps again
	if id := b.open(t).next(t); !id.after(last) {
		t.Errorf("%v after %v", id, last)
	}
	if b.waited != Window || strings.Count(b.logged(), "waiting") != 1 || !strings.Contains(b.logged(), "wait=3s") {
		t.Errorf("waited %v, logged %q", b.waited, b.logged())
	}
}

func TestWaitCanBeGivenUp(t *testing.T) {
	b := newBench(t)
	kill(b.open(t))
	if d, err := b.try(done(t)); !errors.Is(err, context.Canceled) || d != nil {
		t.Errorf("%v, %v", d, err)
	}
	b.open(t) // fails unless the lock was released
}

func TestStartRefused(t *testing.T) {
	for name, c := range map[string]struct {
		clock  uint64
		broken bool
		down   time.Duration
		want   error
		says   []string
	}{
		"clock set back": {clock: someTime - 1, want: tick.ErrClockBackwards,
			says: []string{"2023-11-14T22:13:23.000Z (1700000003000)", "2023-11-14T22:13:19.999Z (1699999999999)",
				"correct the clock", "in 1s"}},
		"clock at zero": {clock: 0, want: tick.ErrClockBackwards},
		"clock set ahead": {clock: someTime + window + 30*86400_000 + 1, want: tick.ErrClockAdvanced,
			says: []string{"allowable_downtime (2592000000 ms)", "above 2592000001"}},
		"down for long": {clock: someTime + window + 1001, down: time.Second, want: tick.ErrClockAdvanced,
			says: []string{"1000 ms"}},
		"disk full": {clock: someTime + window + 1, broken: true, want: tick.ErrTimestampNotSaved,
			says: []string{"no space left", "free the disk"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			kill(b.open(t))
			before := b.saved(t)
			b.clock.Store(c.clock)
			b.broken.Store(c.broken)
			o := b.options()
			o.AllowableDowntime = c.down
			d, err := b.node(t.Context(), disk{broken: &b.broken}, o)
			if d != nil || !errors.Is(err, c.want) {
				t.Fatalf("%v, %v", d, err)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v\ndoes not say %q", err, word)
				}
			}
			if b.saved(t) != before {
				t.Error("the file was changed")
			}
			b.clock.Store(someTime + window + 1)
			b.broken.Store(false)
			b.open(t) // nothing remains of the refused start
		})
	}
}

// An invalid option is refused before a lock file is created.
func TestInvalidOption(t *testing.T) {
	b := newBench(t)
	ids := b.ids()
	_, err := Open(t.Context(), b.path, ids, Options{AllowableDowntime: -1})
	if err == nil || !strings.Contains(err.Error(), "allowable_downtime is -1ns: must be at least 0") {
		t.Error(err)
	}
	if files, err := os.ReadDir(filepath.Dir(b.path)); len(files) > 0 || err != nil {
		t.Errorf("Open left %v, %v", files, err)
	}
}

func TestEdgesOfTheStart(t *testing.T) {
	for name, clock := range map[string]uint64{
		"window behind":             someTime,
		"as long as it may be down": someTime + window + 30*86400_000,
		"one past the mark":         someTime + window + 1,
		"at the mark":               someTime + window,
		"one before the mark":       someTime + window - 1,
	} {
		b := newBench(t)
		kill(b.open(t))
		b.clock.Store(clock)
		if id := b.open(t).next(t); id.milli <= someTime+window {
			t.Errorf("%s: %v is not past the mark", name, id)
		}
	}
}

func TestSecondNodeIsRefused(t *testing.T) {
	b := newBench(t)
	b.open(t)
	if d, err := b.try(t.Context()); !errors.Is(err, mark.ErrLocked) {
		t.Errorf("%v, %v", d, err)
	}
}

func TestMarkNeverFalls(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	b.clock.Add(window) // up to the mark itself
	last := d.next(t)
	b.clock.Store(someTime - 10_000)
	if err := d.Renew(); err != nil || b.saved(t) != last.milli {
		t.Errorf("%v, the mark is %d", err, b.saved(t))
	}
}

func TestRewind(t *testing.T) {
	const before = someTime + 3600_000
	for name, c := range map[string]struct {
		clock, safe uint64
		rewound     bool
		waited      time.Duration
		refused     bool
	}{
		"past the mark":                    {clock: before + 1, safe: someTime},
		"within the window":                {clock: before - window, safe: someTime, waited: Window + time.Millisecond},
		"far behind":                       {clock: before - window - 1, safe: someTime, rewound: true},
		"far behind, at safe":              {clock: someTime, safe: someTime, rewound: true, waited: time.Millisecond},
		"far behind, also far behind safe": {clock: someTime - window - 1, safe: someTime, rewound: true, refused: true},
		"far behind, safe long past":       {clock: someTime, safe: 0, rewound: true},
		"far behind, a window before safe": {clock: someTime - window, safe: someTime, rewound: true,
			waited: Window + time.Millisecond},
	} {
		b := newBench(t)
		f, _, err := mark.Open(mark.OS{}, b.path)
		if err == nil {
			err = errors.Join(f.Save(mark.Content{Marks: map[string]mark.Mark{"": {Milli: before, Latest: before,
				Words: []uint64{1}}}}), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Store(c.clock)
		ids := b.ids()
		s := &stateful{Generator: ids, words: []uint64{2}, safe: c.safe}
		k, err := b.alone(t.Context(), mark.OS{}, s, b.options())
		if errors.Is(err, tick.ErrClockBackwards) != c.refused || (s.rewound == before) != c.rewound || b.waited != c.waited {
			t.Errorf("%s: %v, rewound at %d, waited %v", name, err, s.rewound, b.waited)
		}
		if continues := c.rewound && !c.refused; strings.Contains(b.logged(), "continuing at that time") != continues {
			t.Errorf("%s: logged %q", name, b.logged())
		}
		if err != nil {
			continue
		}
		if got := k.Mark().UnixMilli(); got != int64(b.clock.Load()+window) {
			t.Errorf("%s: the mark is %d, the clock %d", name, got, b.clock.Load())
		}
		k.marks.file.Close()
	}
}

func done(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// stateful is a generator with words. If it rewinds, its new ids after safe differ from all earlier
// ids.
type stateful struct {
	*tick.Generator
	words    []uint64
	restored []uint64
	refuse   error

	safe, rewound, bound uint64
}

func (s *stateful) Rewind(last uint64) uint64 {
	s.rewound = last
	return s.safe
}

func (s *stateful) Exclude(after uint64) { s.bound = after }

func (s *stateful) Words() []uint64 { return s.words }

func (s *stateful) Restore(words []uint64) error {
	s.restored = words
	return s.refuse
}

func TestWordsAreKept(t *testing.T) {
	b := newBench(t)
	run := func(s *stateful) *Marker {
		t.Helper()
		s.Generator = b.ids()
		k, err := b.alone(t.Context(), mark.OS{}, s, b.options())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := &stateful{words: []uint64{1, 2}}
	k := run(first)
	if first.restored != nil {
		t.Errorf("the first run restored %v", first.restored)
	}
	first.words[1] = 3
	if err := k.Renew(); err != nil {
		t.Fatal(err)
	}
	k.marks.file.Close() // killed
	second := &stateful{words: []uint64{4}}
	k = run(second)
	if !slices.Equal(second.restored, []uint64{1, 3}) {
		t.Errorf("restored %v", second.restored)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	third := &stateful{Generator: second.Generator, refuse: refused}
	if _, err := b.alone(t.Context(), mark.OS{}, third, b.options()); !errors.Is(err, refused) ||
		!slices.Equal(third.restored, []uint64{4}) {
		t.Errorf("%v, restored %v", err, third.restored)
	}
	if _, err := b.try(t.Context()); err == nil || !strings.Contains(err.Error(), "another id format") {
		t.Errorf("opened without the words: %v", err)
	}
}

// The times of the last run are not used again, even if the clock is set back just after the start.
func TestClockBackAfterTheStart(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	d.next(t)
	b.clock.Add(1000)
	d.next(t)
	d.Close()
	b.clock.Add(1)
	d = b.open(t)
	for _, back := range []uint64{2, 500, 1001} { // into the last run
		b.clock.Add(-back)
		if id, err := d.try(); !errors.Is(err, tick.ErrClockBackwards) {
			t.Errorf("%v, %v", id, err)
		}
		b.clock.Add(back)
	}
	d.next(t)
}
