package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// counting is a disk that counts durable writes.
type counting struct {
	disk
	overwrites, writes, renames, folders int
}

func (c *counting) Overwrite(path string, offset int64, data []byte) error {
	c.overwrites++
	return c.disk.Overwrite(path, offset, data)
}

func (c *counting) Create(path string, data []byte) error {
	c.writes++
	return c.disk.Create(path, data)
}

func (c *counting) Rename(from, to string) error {
	c.renames++
	return c.disk.Rename(from, to)
}

func (c *counting) SyncDir(path string) error {
	c.folders++
	return c.disk.SyncDir(path)
}

// did checks that the disk made the given number of saves since the last call. A save overwrites two
// slots, or writes a file.
func (c *counting) did(t *testing.T, saves int, when string) {
	t.Helper()
	if c.overwrites%2 != 0 || c.overwrites/2+c.writes != saves || c.writes > 2 ||
		c.renames != c.writes || c.folders != c.writes {
		t.Errorf("%s: %d overwrites, %d writes, %d renames, %d fsyncs of the directory, want %d saves", when, c.overwrites,
			c.writes, c.renames, c.folders, saves)
	}
	c.overwrites, c.writes, c.renames, c.folders = 0, 0, 0, 0
}

func (b *bench) marks(t *testing.T, disk mark.Disk) *Marks {
	t.Helper()
	m, err := OpenMarksOn(disk, b.sleep, b.path, b.options().Logger, linger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.file.Close() })
	return m
}

// tryIn opens a generator whose mark is in m, under a name.
func (b *bench) tryIn(t *testing.T, m *Marks, name string) (*node, error) {
	ids := b.ids()
	o := b.options()
	o.Marks = m
	k, err := OpenOn(t.Context(), name, ids, o)
	return &node{k, ids}, err
}

func (b *bench) openIn(t *testing.T, m *Marks, name string) *node {
	t.Helper()
	d, err := b.tryIn(t, m, name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inFile returns the names in the file.
func (b *bench) inFile(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(b.content(t).Marks))
}

// There is one write per second for any number of generators. After a while without calls there are
// no writes.
func TestWrites(t *testing.T) {
	for _, n := range []int{1, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBench(t)
			c := &counting{disk: disk{broken: &b.broken}}
			m := b.marks(t, c)
			all := []*node{b.openIn(t, m, "")}
			for i := 1; i < n; i++ {
				all = append(all, b.openIn(t, m, fmt.Sprint("g", i)))
			}
			c.did(t, n, "at the start")
			beat := func() {
				b.clock.Add(1000)
				m.beat()
			}
			for range 1000 {
				beat()
			}
			c.did(t, 0, "before the first call")
			for _, d := range all {
				d.Renew()
				d.next(t)
			}
			c.did(t, n, "renewed one by one")
			for range 10 {
				beat()
				for _, d := range all {
					d.next(t)
				}
			}
			c.did(t, 10, "while all make ids")
			for range 10 {
				beat()
				all[n-1].next(t)
			}
			c.did(t, 10, "while one makes ids")
			beat()
			for range 10 * linger {
				beat()
			}
			c.did(t, linger, "without calls")
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			c.did(t, 1, "at the end")
		})
	}
}

// The first call after a pause saves the file and then gets its id. The other generators continue
// without another save.
func TestFirstCallAfterAWhile(t *testing.T) {
	b := newBench(t)
	c := &counting{disk: disk{broken: &b.broken}}
	synctest.Test(t, func(t *testing.T) {
		m := b.marks(t, c)
		first, second := b.openIn(t, m, ""), b.openIn(t, m, "second")
		m.begin(nil) // only calls move the marks
		first.keep(nil)
		second.keep(nil)
		c.did(t, 2, "at the start")
		b.clock.Add(3600_000)
		first.next(t)
		second.next(t)
		c.did(t, 1, "after an hour")
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// OpenMarks works with its defaults, on the machine's disk.
func TestOpenMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	synctest.Test(t, func(t *testing.T) {
		m, err := OpenMarks(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1},
			func() uint64 { return tick.MilliOf(time.Now()) })
		if err != nil {
			t.Fatal(err)
		}
		k, err := Open(t.Context(), "orders", ids, Options{Marks: m})
		if err != nil {
			t.Fatal(err)
		}
		d := &node{k, ids}
		d.next(t)
		time.Sleep(linger * renewal / 2)
		if d.Mark().Before(time.Now()) {
			t.Errorf("the mark stays at %v", d.Mark())
		}
		time.Sleep(time.Hour)
		if at, _ := d.LastSaved(); time.Since(at) < time.Hour/2 {
			t.Errorf("saved at %v, although no id was requested", at)
		}
		if d.next(t); d.Mark().Before(time.Now()) {
			t.Errorf("an id past the mark, %v", d.Mark())
		}
		if _, err := OpenMarks(path, nil); !errors.Is(err, mark.ErrLocked) {
			t.Errorf("opened twice: %v", err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A generator with a separate file always keeps the mark ahead.
func TestAloneIsNeverIdle(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	b.clock.Add(3600_000)
	d.Beat()
	if got := b.saved(t); got != b.clock.Load()+window {
		t.Errorf("the mark is %d, the clock %d", got, b.clock.Load())
	}
}

// A long time without calls does not count as downtime.
func TestIdleIsNotDown(t *testing.T) {
	b := newBench(t)
	c := &counting{disk: disk{broken: &b.broken}}
	m := b.marks(t, c)
	b.openIn(t, m, "")
	c.did(t, 1, "at the start")
	const hours = 40 * 24
	for range hours * 60 {
		b.clock.Add(60_000)
		m.beat()
	}
	c.did(t, hours*60/61, "in 40 days")
	m.file.Close() // killed
	b.clock.Add(uint64((DefaultDowntime - 2*idle) / time.Millisecond))
	b.open(t).next(t)
}

// If the clock is set back, and no ids were made while it was ahead, the mark is lowered. This
// takes one write, and does not count as a call.
func TestIdleWithTheClockSetBack(t *testing.T) {
	b := newBench(t)
	c := &counting{disk: disk{broken: &b.broken}}
	m := b.marks(t, c)
	b.openIn(t, m, "")
	c.did(t, 1, "at the start")
	b.clock.Store(someTime - 3600_000)
	m.beat()
	if got := b.saved(t); got != b.clock.Load()+window {
		t.Errorf("the mark is %d, the clock %d", got, b.clock.Load())
	}
	for range 2 * linger {
		b.clock.Add(1000)
		m.beat()
	}
	c.did(t, 1, "set back")
}

// If little downtime is allowed, an idle node writes as often as a busy one.
func TestIdleWithLittleDowntime(t *testing.T) {
	b := newBench(t)
	c := &counting{disk: disk{broken: &b.broken}}
	ids := b.ids()
	m := b.marks(t, c)
	if _, err := OpenOn(t.Context(), "", ids, Options{Marks: m, AllowableDowntime: 100 * time.Second}); err != nil {
		t.Fatal(err)
	}
	c.did(t, 1, "at the start")
	for range 100 {
		b.clock.Add(5000)
		m.beat()
	}
	c.did(t, 100, "idle")
}

// While the disk hangs, calls to a generator that is being closed fail.
func TestCloseLetsGo(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	first, second := b.openIn(t, m, ""), b.openIn(t, m, "second")
	m.begin(nil)
	first.keep(nil)
	second.keep(nil)
	b.clock.Add(3600_000)
	m.saving.Lock() // as if waiting for the disk
	var closing sync.WaitGroup
	closing.Go(func() { first.Close() })
	<-first.open.Done()
	if _, err := first.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("the generator is closed: %v", err)
	}
	closing.Go(func() { m.Close() })
	<-m.open.Done()
	if _, err := second.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("all generators are closed: %v", err)
	}
	m.saving.Unlock()
	closing.Wait()
}

// put writes a file of marks.
func put(t *testing.T, path string, c mark.Content) {
	t.Helper()
	f, _, err := mark.Open(mark.OS{}, path)
	if err == nil {
		err = errors.Join(f.Save(c), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func alone(milli uint64) mark.Content { return named("", milli) }

func named(name string, milli uint64) mark.Content {
	return mark.Content{Marks: map[string]mark.Mark{name: markAt(milli)}}
}

func markAt(milli uint64) mark.Mark { return mark.Mark{Milli: milli, Latest: milli} }

// If the file is closed while a generator waits in OpenOn, OpenOn fails. Later calls fail too.
func TestCloseWhileOneBegins(t *testing.T) {
	b := newBench(t)
	put(t, b.path, named("a", someTime+window))
	var m *Marks
	for name, wait := range map[string]tick.Sleeper{
		"one that waits": func(ctx context.Context, _ time.Duration) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"one that has waited": func(_ context.Context, d time.Duration) error { return b.sleep(t.Context(), d) },
	} {
		m = b.marks(t, mark.OS{})
		ids := b.ids()
		o := b.options()
		o.Marks = m
		m.sleep = func(ctx context.Context, d time.Duration) error {
			m.Close()
			return wait(ctx, d)
		}
		_, err := OpenOn(t.Context(), "a", ids, o)
		if !errors.Is(err, errEnded) || strings.Contains(err.Error(), "free the disk") {
			t.Errorf("%s: %v", name, err)
		}
		b.clock.Store(someTime)
	}
	b.clock.Add(2 * window)
	if _, err := b.tryIn(t, m, "a"); !errors.Is(err, errEnded) || strings.Contains(err.Error(), "free the disk") {
		t.Errorf("a later OpenOn: %v", err)
	}
}

// After a failed save the next beat retries, even without calls. No logger is needed.
func TestFailedSaveIsTriedAgain(t *testing.T) {
	b := newBench(t)
	m, err := OpenMarksOn(disk{broken: &b.broken}, b.sleep, b.path, nil, linger)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d := b.openIn(t, m, "a")
	m.attempts.Settle(errFull)
	b.clock.Add(1000)
	m.beat()
	if err := d.Ready(); err != nil || m.latest != 0 || d.Mark().UnixMilli() != int64(b.clock.Load()+window) {
		t.Errorf("%v, with the mark at %v", err, d.Mark())
	}
	if names := m.Names(); !slices.Equal(names, []string{"a"}) {
		t.Errorf("%q", names)
	}
}

func TestCheckMarks(t *testing.T) {
	b := newBench(t)
	if err := CheckMarks(b.path); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(b.path, []byte("foreign"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckMarks(b.path); err == nil {
		t.Error("a foreign file is accepted")
	}
}

// Every id counts as a call, even if it has the millisecond of the last id. A mark is stale once it
// is too old.
func TestAskedAndStale(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	d.next(t)
	first := d.asked()
	d.next(t)
	if second := d.asked(); !first || !second || d.asked() {
		t.Errorf("asked: %v, %v", first, second)
	}
	b.clock.Store(d.mark.Load() + d.old)
	if d.stale() {
		t.Error("the mark is stale too early")
	}
	if b.clock.Add(1); !d.stale() {
		t.Error("the mark is not stale")
	}
}

// Generators on a simulated machine wait by calling its sleep; others really wait.
func TestWaitsOfTheMachine(t *testing.T) {
	b := newBench(t)
	put(t, b.path, named("a", someTime+1000))
	ids := b.ids()
	m := b.marks(t, mark.OS{})
	if content, path := m.Saved(); path != b.path || content.Marks["a"].Milli != someTime+1000 {
		t.Fatal(path, content)
	}
	if _, err := Open(t.Context(), "a", ids, Options{Marks: m}); err != nil || b.waited != 1001*time.Millisecond {
		t.Errorf("%v, after %v", err, b.waited)
	}
	m.file.Close()
	b.clock.Add(1)
	m, err := OpenMarks(b.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := Open(done(t), "a", ids, Options{Marks: m}); !errors.Is(err, context.Canceled) {
		t.Errorf("on the real machine: %v", err)
	}
}

// If the file has other marks too, the mark without a name need not be opened first.
func TestNamelessIsNotFirst(t *testing.T) {
	b := newBench(t)
	put(t, b.path, mark.Content{Marks: map[string]mark.Mark{"": markAt(someTime - 1), "a": markAt(someTime - 1)}})
	b.openIn(t, b.marks(t, mark.OS{}), "b")
}

// For a generator with a separate file, errors name only the file.
func TestWhereAMarkIs(t *testing.T) {
	b := newBench(t)
	if d := b.open(t); d.at != b.path {
		t.Errorf("the mark is at %q", d.at)
	}
}

// That a file is new is a warning, once for all generators. A generator that an old file lacks is none.
func TestNewFileIsLoggedOnce(t *testing.T) {
	b := newBench(t)
	start := func(names ...string) {
		t.Helper()
		o := b.options()
		m, err := OpenMarksOn(mark.OS{}, b.sleep, b.path, o.Logger, 0)
		if err != nil {
			t.Fatal(err)
		}
		o.Marks = m
		for _, name := range names {
			if _, err := OpenOn(t.Context(), name, b.ids(), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	start("flake", "orders", "events")
	if logged := b.logged(); strings.Count(logged, "\n") != 1 || strings.Count(logged, "WARN") != 1 {
		t.Errorf("a new file: %s", logged)
	}
	b.log.Reset()
	b.clock.Add(window + 1) // otherwise a generator might wait, and say so
	start("flake", "orders", "events", "users")
	if logged := b.logged(); strings.Count(logged, "\n") != 1 || strings.Count(logged, "INFO") != 1 ||
		!strings.Contains(logged, "file="+b.path+" generator=users\n") {
		t.Errorf("a generator new to an old file: %s", logged)
	}
}
