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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
)

// counting is a disk that counts what makes a mark durable.
type counting struct {
	disk
	writes, syncs, renames, folders int
}

func (c *counting) Create(path string) (mark.Writer, error) {
	w, err := c.disk.Create(path)
	return countingWriter{w, c}, err
}

func (c *counting) Rename(from, to string) error {
	c.renames++
	return c.disk.Rename(from, to)
}

func (c *counting) SyncDir(path string) error {
	c.folders++
	return c.disk.SyncDir(path)
}

type countingWriter struct {
	mark.Writer
	c *counting
}

func (w countingWriter) Write(p []byte) (int, error) {
	w.c.writes++
	return w.Writer.Write(p)
}

func (w countingWriter) Sync() error {
	w.c.syncs++
	return w.Writer.Sync()
}

// did fails unless the disk was written to so often since it was asked last.
func (c *counting) did(t *testing.T, saves int, when string) {
	t.Helper()
	if c.writes != saves || c.syncs != saves || c.renames != saves || c.folders != saves {
		t.Errorf("%s: %d writes, %d and %d fsyncs, %d renames, not %d", when, c.writes, c.syncs, c.folders, c.renames, saves)
	}
	c.writes, c.syncs, c.renames, c.folders = 0, 0, 0, 0
}

func (b *bench) marks(t *testing.T, disk mark.Disk) *Marks {
	t.Helper()
	m, err := OpenMarksOn(disk, b.path, b.options().Logger, linger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.file.Close() })
	return m
}

// tryIn opens a generator whose mark is in marks under a name.
func (b *bench) tryIn(t *testing.T, m *Marks, name string) (*node, error) {
	ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: tick.MaxPerTick}, b.clock.Load)
	if err != nil {
		return nil, err
	}
	o := b.options()
	o.Marks = m
	k, err := OpenOn(t.Context(), nil, b.sleep, name, ids, o)
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

// inFile are the names in the file.
func (b *bench) inFile(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := mark.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(marks))
}

// However many generators there are, a second costs one write, and none while nobody
// asks.
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
			c.did(t, 0, "before anybody asks")
			for _, d := range all {
				d.Renew()
				d.next(t)
			}
			c.did(t, n, "asked for")
			for range 10 {
				beat()
				for _, d := range all {
					d.next(t)
				}
			}
			c.did(t, 10, "while all are asked")
			for range 10 {
				beat()
				all[n-1].next(t)
			}
			c.did(t, 10, "while one is asked")
			beat()
			for range 10 * linger {
				beat()
			}
			c.did(t, linger, "when nobody asks any more")
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			c.did(t, 1, "at the end")
		})
	}
}

// The first call after a while has the file written, and gets its id; and all
// generators go on.
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
		c.did(t, 1, "asked")
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// With nothing but the defaults, on the machine's own disk.
func TestOpenMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timestamp")
	synctest.Test(t, func(t *testing.T) {
		m, err := OpenMarks(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, func() uint64 { return tick.MilliOf(time.Now()) })
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
			t.Errorf("saved at %v, though nobody asked for ids", at)
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

// One that has the file for itself keeps the mark ahead all the time.
func TestAloneIsNeverIdle(t *testing.T) {
	b := newBench(t)
	d := b.open(t)
	b.clock.Add(3600_000)
	d.Beat()
	if got := b.saved(t); got != b.clock.Load()+window {
		t.Errorf("the mark is %d at %d", got, b.clock.Load())
	}
}

// A node that nobody asked for ids for long was not down.
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

// Where the clock was ahead and nobody asked for ids, the mark goes back with it, at
// the price of one write, which counts as no call.
func TestIdleWithTheClockSetBack(t *testing.T) {
	b := newBench(t)
	c := &counting{disk: disk{broken: &b.broken}}
	m := b.marks(t, c)
	b.openIn(t, m, "")
	c.did(t, 1, "at the start")
	b.clock.Store(someTime - 3600_000)
	m.beat()
	if got := b.saved(t); got != b.clock.Load()+window {
		t.Errorf("the mark is %d at %d", got, b.clock.Load())
	}
	for range 2 * linger {
		b.clock.Add(1000)
		m.beat()
	}
	c.did(t, 1, "set back")
}

// Where little downtime is allowed, an idle one writes as often as one that is asked.
func TestIdleWithLittleDowntime(t *testing.T) {
	b := newBench(t)
	c := &counting{disk: disk{broken: &b.broken}}
	ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, b.clock.Load)
	if err != nil {
		t.Fatal(err)
	}
	m := b.marks(t, c)
	if _, err := OpenOn(t.Context(), nil, b.sleep, "", ids, Options{Marks: m, AllowableDowntime: 100 * time.Second}); err != nil {
		t.Fatal(err)
	}
	c.did(t, 1, "at the start")
	for range 100 {
		b.clock.Add(5000)
		m.beat()
	}
	c.did(t, 100, "idle")
}

// While the disk hangs, calls of what is being closed are let go.
func TestCloseLetsGo(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	first, second := b.openIn(t, m, ""), b.openIn(t, m, "second")
	m.begin(nil)
	first.keep(nil)
	second.keep(nil)
	b.clock.Add(3600_000)
	m.saving.Lock() // as who waits for the disk does
	var closing sync.WaitGroup
	closing.Go(func() { first.Close() })
	<-first.stop
	if _, err := first.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("one is closed: %v", err)
	}
	closing.Go(func() { m.Close() })
	<-m.open.Done()
	if _, err := second.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("all are closed: %v", err)
	}
	m.saving.Unlock()
	closing.Wait()
}

// A generator of several ends and begins by itself, exactly where it was; so do those
// that have not been opened since.
func TestOneOfSeveral(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	own, a := b.openIn(t, m, ""), b.openIn(t, m, "a")
	b.clock.Add(window + 1) // or it would wait
	if _, err := b.tryIn(t, m, "a"); err == nil || !strings.Contains(err.Error(), `as "a"`) {
		t.Errorf("opened twice: %v", err)
	}
	if err := own.Renew(); err != nil {
		t.Error(err)
	}
	if want := "path=" + b.path + " name=a\n"; !strings.Contains(b.logged(), want) {
		t.Errorf("%s is not logged: %s", want, b.logged())
	}
	for _, name := range []string{"a b", "a\nb", "a\x00", "a/b", "a\xff", "a\u2028"} {
		if _, err := b.tryIn(t, m, name); err == nil || !strings.Contains(err.Error(), "no name") {
			t.Errorf("%q: %v", name, err)
		}
	}
	last := a.next(t)
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if _, err := a.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if got := a.Mark().UnixMilli(); got != int64(last.milli) {
		t.Errorf("the mark is %d, the last id %d", got, last.milli)
	}
	if err := own.Renew(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(b.path); !strings.Contains(string(data), fmt.Sprint("\na ", last.milli, " ")) {
		t.Errorf("the mark of what has ended is lost: %q, %v", data, err)
	}
	b.clock.Add(1)
	own.next(t)
	if id := b.openIn(t, m, "a").next(t); !id.after(last) || b.waited != 0 {
		t.Errorf("%v after %v, waited %v", id, last, b.waited)
	}
	b.clock.Add(5000)
	if err := own.Renew(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), m.Close(), own.Close()); err != nil {
		t.Error(err)
	}
	if _, err := own.try(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close of all: %v", err)
	}
	if err := own.Renew(); !errors.Is(err, tick.ErrClosed) {
		t.Errorf("after Close of all: %v", err)
	}
	b.clock.Add(1)
	alone := b.open(t)
	alone.next(t)
	if got := b.inFile(t); !slices.Equal(got, []string{"", "a"}) || b.waited != 0 {
		t.Errorf("%q, waited %v", got, b.waited)
	}
	kill(alone)
	b.clock.Store(someTime)
	if _, err := b.tryIn(t, b.marks(t, mark.OS{}), "a"); !errors.Is(err, tick.ErrClockBackwards) {
		t.Errorf("with the clock set back: %v", err)
	}
}

// What fails for one is nothing to the others.
func TestOneThatCannotBegin(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, disk{broken: &b.broken})
	own := b.openIn(t, m, "")
	b.broken.Store(true)
	if _, err := b.tryIn(t, m, "a"); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "free the disk") {
		t.Error(err)
	}
	b.broken.Store(false)
	if err := own.Renew(); err != nil {
		t.Error(err)
	}
	if got := b.inFile(t); !slices.Equal(got, []string{""}) {
		t.Errorf("%q", got)
	}
	b.openIn(t, m, "a")
}

// put writes a file of marks.
func put(t *testing.T, path string, marks mark.Marks) {
	t.Helper()
	f, _, err := mark.Open(mark.OS{}, path)
	if err == nil {
		err = errors.Join(f.Save(marks), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func alone(milli uint64) mark.Marks { return mark.Marks{"": {Milli: milli}} }

// A name is one generator's from before its mark is read until it has ended: else the
// mark might be one from before the last ids.
func TestNameIsReserved(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	first := b.openIn(t, m, "a")
	waits := func(wait func()) error {
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, b.clock.Load)
		if err != nil {
			t.Fatal(err)
		}
		o := b.options()
		o.Marks = m
		_, err = OpenOn(t.Context(), nil, func(ctx context.Context, d time.Duration) error {
			wait()
			return b.sleep(ctx, d)
		}, "a", ids, o)
		return err
	}
	if err := waits(func() { first.Close() }); err == nil || !strings.Contains(err.Error(), `as "a"`) {
		t.Errorf("while the first runs: %v", err)
	}
	kill := func() { // as if it had crashed
		m.file.Close()
		m = b.marks(t, mark.OS{})
	}
	kill()
	var second error
	if err := waits(func() { _, second = b.tryIn(t, m, "a") }); err != nil || second == nil || !strings.Contains(second.Error(), `as "a"`) {
		t.Errorf("while the first waits: %v; %v", err, second)
	}
	kill()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	o := b.options()
	o.Marks = m
	if _, err := OpenOn(ctx, nil, tick.Sleep, "a", first.ids, o); !errors.Is(err, why) {
		t.Errorf("one that is not to wait: %v", err)
	}
	b.openIn(t, m, "a").Close()
	b.openIn(t, m, "a")
}

// Of those that open one name at once, one has it.
func TestNameAtOnce(t *testing.T) {
	b := newBench(t)
	m := b.marks(t, mark.OS{})
	var opened atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := b.tryIn(t, m, "a"); err == nil {
				opened.Add(1)
			}
		})
	}
	all.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("%d have the name", n)
	}
}

// Who waits to begin is let go when all are closed, and so is who comes later.
func TestCloseWhileOneBegins(t *testing.T) {
	b := newBench(t)
	put(t, b.path, mark.Marks{"a": {Milli: someTime + window}})
	var m *Marks
	for name, wait := range map[string]tick.Sleeper{
		"one that waits": func(ctx context.Context, _ time.Duration) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"one that has waited": func(_ context.Context, d time.Duration) error { return b.sleep(t.Context(), d) },
	} {
		m = b.marks(t, mark.OS{})
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, b.clock.Load)
		if err != nil {
			t.Fatal(err)
		}
		o := b.options()
		o.Marks = m
		_, err = OpenOn(t.Context(), nil, func(ctx context.Context, d time.Duration) error {
			m.Close()
			return wait(ctx, d)
		}, "a", ids, o)
		if !errors.Is(err, errEnded) || strings.Contains(err.Error(), "free the disk") {
			t.Errorf("%s: %v", name, err)
		}
		b.clock.Store(someTime)
	}
	b.clock.Add(2 * window)
	if _, err := b.tryIn(t, m, "a"); !errors.Is(err, errEnded) || strings.Contains(err.Error(), "free the disk") {
		t.Errorf("later: %v", err)
	}
}

// Where each generator had a file of its own, it begins after the mark in that; once it
// has one in the common file, the former one is not looked at any more.
func TestFormerFiles(t *testing.T) {
	b := newBench(t)
	path := b.path
	former := map[string]uint64{"": someTime + 1000, "-orders": someTime + 2000, "-items": someTime + 10_000}
	for name, milli := range former {
		put(t, path+name, alone(milli))
	}
	m := b.marks(t, mark.OS{})
	for _, name := range []string{"", "orders"} {
		d := b.openIn(t, m, name)
		if id := d.next(t); id.milli <= former[strings.TrimSuffix("-"+name, "-")] {
			t.Errorf("%q: %v", name, id)
		}
	}
	if _, err := b.tryIn(t, m, "items"); !errors.Is(err, tick.ErrClockBackwards) || !strings.Contains(err.Error(), path+"-items") {
		t.Errorf("the clock is behind: %v", err)
	}
	b.openIn(t, m, "fresh")
	if got := b.inFile(t); !slices.Equal(got, []string{"", "fresh", "orders"}) {
		t.Errorf("%q", got)
	}
	// A release from before does not read the file, and so not start.
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "flake-mark 3 ") {
		t.Errorf("%q, %v", data, err)
	}
	for name, milli := range former {
		if b.path = path + name; name != "" && b.saved(t) != milli {
			t.Errorf("%s has %d, and had %d", b.path, b.saved(t), milli)
		}
	}
	put(t, path+"-orders", alone(1)) // nobody keeps it locked
	if err := os.WriteFile(path+"-orders", []byte("no mark"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.path = path
	b.clock.Add(5000)
	m.Close()
	b.clock.Add(1)
	m = b.marks(t, mark.OS{})
	b.openIn(t, m, "orders").next(t)
	m.Close()
	b.clock.Store(someTime)
	if _, err := b.tryIn(t, b.marks(t, mark.OS{}), "orders"); !errors.Is(err, tick.ErrClockBackwards) || !strings.Contains(err.Error(), path+" (orders)") {
		t.Errorf("the clock is behind the file: %v", err)
	}
}

// A generator of a release before that still runs is not taken over.
func TestFormerFileInUse(t *testing.T) {
	b := newBench(t)
	path := b.path
	b.path += "-orders"
	old := b.open(t)
	old.next(t)
	b.path = path
	m := b.marks(t, mark.OS{})
	b.clock.Add(2 * window)
	if _, err := b.tryIn(t, m, "orders"); !errors.Is(err, mark.ErrLocked) || !strings.Contains(err.Error(), path+"-orders") {
		t.Errorf("while it runs: %v", err)
	}
	if err := old.Renew(); err != nil {
		t.Error(err)
	}
	last := old.next(t)
	kill(old)
	if id := b.openIn(t, m, "orders").next(t); !id.after(last) {
		t.Errorf("%v after %v", id, last)
	}
	if err := old.Renew(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the old one goes on: %v", err)
	}
}

// A file is never taken for none: what may be another's is refused, and stays.
func TestNeverAnew(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]mark.Marks // by what is behind the path
		alone bool                  // without Marks, else as orders
		says  string
	}{
		"alone with those of names":         {map[string]mark.Marks{"": {"a": {Milli: 1}}}, true, "none without"},
		"a name where there is one without": {map[string]mark.Marks{"": alone(1)}, false, "without a name"},
		"a former one of another name":      {map[string]mark.Marks{"-orders": {"orders": {Milli: 1}}}, false, "of several"},
		"a former one of several":           {map[string]mark.Marks{"-orders": {"": {Milli: 1}, "a": {Milli: 1}}}, false, "of several"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			at := b.path
			for behind, marks := range c.files {
				put(t, b.path+behind, marks)
				at = b.path + behind
			}
			if c.files["-orders"] != nil {
				at = b.path + "-orders"
			}
			content := func() string {
				one, _ := os.ReadFile(b.path)
				other, _ := os.ReadFile(b.path + "-orders")
				return string(one) + string(other)
			}
			before := content()
			for range 2 { // the first leaves no lock and no name behind
				var err error
				if c.alone {
					_, err = b.try(t.Context())
				} else {
					m := b.marks(t, mark.OS{})
					_, err = b.tryIn(t, m, "orders")
					if _, again := b.tryIn(t, m, "orders"); fmt.Sprint(err) != fmt.Sprint(again) {
						t.Errorf("once more: %v", again)
					}
					m.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), at+":") {
					t.Errorf("%v\ndoes not say %q of %s", err, c.says, at)
				}
			}
			if after := content(); after != before {
				t.Errorf("%q, and was %q", after, before)
			}
		})
	}
	for name, make := range map[string]func(path string) error{
		"no mark":        func(path string) error { return os.WriteFile(path, []byte("no mark"), 0o644) },
		"a link to lost": func(path string) error { return os.Symlink(path+".none", path) },
		"a lock not ours": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("x"), 0o644), os.Mkdir(path+".lock", 0o755))
		},
	} {
		b := newBench(t)
		if err := make(b.path + "-orders"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.tryIn(t, b.marks(t, mark.OS{}), "orders"); err == nil || !strings.Contains(err.Error(), b.path+"-orders") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A path is the same one whatever becomes the working folder.
func TestFormerFileElsewhere(t *testing.T) {
	b := newBench(t)
	put(t, b.path+"-orders", alone(someTime+1000))
	t.Chdir(filepath.Dir(b.path))
	m, err := OpenMarksOn(mark.OS{}, filepath.Base(b.path), nil, linger)
	if err != nil {
		t.Fatal(err)
	}
	defer m.file.Close()
	t.Chdir(t.TempDir())
	if id := b.openIn(t, m, "orders").next(t); id.milli <= someTime+1000 {
		t.Error(id)
	}
}
