package generators

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/durable"
	"github.com/flake-go/flake/flake/internal/mark"
	"github.com/flake-go/flake/flake/internal/tick"
	"github.com/flake-go/flake/flake/workers"
)

const (
	hold     = 10 * time.Minute
	someTime = 1_700_000_000_000
)

// world is a store that never waits, and the clock of all nodes.
type world struct {
	mu   sync.Mutex
	data map[string]string
	now  uint64
	down error // error of each answer

	sleeps func(ctx context.Context) // called at the start of each sleep, unless nil
	fails  error                     // error of the next open call
	opened []uint64                  // the number passed to each open call
	when   uint64                    // time of the last open call
	closed int                       // number of closed generators
	ends   error                     // error of each close
}

func newWorld() *world {
	return &world{data: map[string]string{"p/floor": founded.String()}, now: someTime}
}

// founded is the floor of a store that was never restored.
var founded = workers.Floor{Places: workers.Place("", "p") + " " + workers.Place("c", "p")}

func (w *world) List(_ context.Context, prefix string) (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.data)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return all, w.down
}

func (w *world) Get(_ context.Context, keys ...string) (texts []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		texts = append(texts, w.data[key])
	}
	return texts, w.down
}

func (w *world) Swap(_ context.Context, have, write map[string]string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, text := range have {
		if w.data[key] != text {
			return false, nil
		}
	}
	maps.Copy(w.data, write)
	return true, nil
}

func (w *world) clock() uint64 { return w.now }

func (w *world) sleep(ctx context.Context, d time.Duration) error {
	if w.sleeps != nil {
		w.sleeps(ctx)
	}
	w.now += uint64(d / time.Millisecond)
	return ctx.Err()
}

// copied writes other claims to all numbers. Their ids may begin at any time, so the nodes' own
// claims are lost, and not clean.
func (w *world) copied() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.data {
		if !strings.HasPrefix(key, "p/n/") {
			continue
		}
		w.data[key] = workers.Value{Mark: w.now + 1, Generation: 9, Token: 9, Name: "copy"}.String()
	}
}

func (w *world) mark(t *testing.T, number uint64) uint64 {
	t.Helper()
	all, err := workers.List(t.Context(), w, "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Number == number {
			return e.Mark
		}
	}
	return 0
}

// disk is the real disk without locks, so that a killed node leaves no lock behind.
type disk struct{ mark.OS }

func (disk) Lock(string) (mark.Lock, error) { return lock{}, nil }

type lock struct{}

func (lock) Keep() (bool, error) { return false, nil }
func (lock) Close() error        { return nil }

type generator struct {
	*tick.Generator
	*durable.Marker
	number uint64
	w      *world // counts the closes, unless nil
}

func (g *generator) Close() error {
	if g.w == nil {
		return g.Marker.Close()
	}
	g.w.closed++
	return errors.Join(g.Marker.Close(), g.w.ends)
}

// counter counts warnings and errors of a log.
type counter struct{ atomic.Int32 }

func (*counter) Enabled(context.Context, slog.Level) bool { return true }
func (c *counter) WithAttrs([]slog.Attr) slog.Handler     { return c }
func (c *counter) WithGroup(string) slog.Handler          { return c }

func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		c.Add(1)
	}
	return nil
}

// node is a running process of a node.
type node struct {
	*Set[*generator]
	w *world
}

func (w *world) start(t *testing.T, path string, numbers uint64) node {
	t.Helper()
	w.now++
	s, err := OpenOn[*generator](disk{}, w.sleep, 0, Config{Path: path, Clock: w.clock, Numbers: &workers.Config{
		Store: w, Prefix: "p", Last: numbers - 1, Hold: hold, Name: path,
	}})
	if err == nil {
		err = s.Owner().Step(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return node{s, w}
}

func (n node) add(t *testing.T, name string, numbered bool) *Generator[*generator] {
	t.Helper()
	g, err := n.Add(t.Context(), name, numbered,
		func(ctx context.Context, name string, number uint64, bound durable.Bound) (*generator, error) {
			n.w.opened, n.w.when = append(n.w.opened, number), n.w.now
			if err := n.w.fails; err != nil {
				n.w.fails = nil
				return nil, err
			}
			ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << 10}, n.w.clock)
			if err != nil {
				return nil, err
			}
			o := durable.Options{Marks: n.Marks(), AllowableDowntime: 1e6 * time.Hour}
			if bound != nil {
				o.Bound = bound
			}
			k, err := durable.OpenOn(ctx, name, ids, o)
			return &generator{ids, k, number, n.w}, err
		})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// id advances the clock by a second, makes an id, and returns its time.
func (n node) id(t *testing.T, g *Generator[*generator]) uint64 {
	t.Helper()
	n.w.now += 1000
	if err := g.Get().Renew(); err != nil {
		t.Fatal(err)
	}
	milli, _, _, err := g.Get().TryReserve(1)
	if err != nil {
		t.Fatal(err)
	}
	return milli
}

// A number is returned with a mark above all ids made with it, including those of a generator that
// is no longer opened, those of a process that was killed, and those made before a failed start.
func TestGivenBackAboveAll(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w, path := newWorld(), filepath.Join(t.TempDir(), "marks")
		n := w.start(t, path, 1)
		n.id(t, n.add(t, "", false))
		n.id(t, n.add(t, "uuids", true))
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		n = w.start(t, path, 1)
		n.add(t, "", false)
		last := n.id(t, n.add(t, "orders", true)) // and the process is killed
		n = w.start(t, path, 1)
		if c, _ := n.Owner().Claim(); !c.Resumed() {
			t.Error("the node made a new claim after a crash, instead of resuming the old one")
		}
		if !refused {
			n.add(t, "", false)
			n.add(t, "uuids", true)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if got := w.mark(t, 0); got < last || got > w.now+uint64(durable.Window/time.Millisecond) {
			t.Errorf("refused %v: the mark is %d, and the last id %d", refused, got, last)
		}
		// Crash, start, clean stop, start within one hold: no wait.
		if before := w.now; !refused {
			n = w.start(t, path, 1)
			n.add(t, "", false)
			n.id(t, n.add(t, "orders", true))
			if w.now > before+5000 {
				t.Errorf("the next start waited for %d ms", w.now-before)
			}
		}
	}
}

// A node that stops before its first id delays neither other nodes nor its next generator.
func TestNoIDs(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "marks")
	n := w.start(t, path, 1)
	n.add(t, "", true)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = w.start(t, path, 1)
	n.add(t, "", true)
	n.add(t, "more", true)
	if w.now > someTime+5000 {
		t.Errorf("the generators waited for %d ms", w.now-someTime)
	}
}

// Ids with a released number continue up to its mark while the next number is prepared. If the
// number is in doubt, they stop immediately.
func TestMove(t *testing.T) {
	for _, clean := range []bool{true, false} {
		w := newWorld()
		n := w.start(t, filepath.Join(t.TempDir(), "marks"), 2)
		g := n.add(t, "", true)
		old := g.Get()
		n.id(t, g)
		last, _ := n.Owner().Claim()
		if clean {
			if _, err := workers.Release(t.Context(), w, "p", last.Number(), w.now); err != nil {
				t.Fatal(err)
			}
		} else {
			w.copied()
		}
		other := w.start(t, filepath.Join(t.TempDir(), "marks"), 2) // so that no number is free
		err := n.Owner().Step(t.Context())
		if !errors.Is(err, workers.ErrNoneFree) {
			t.Fatal(err)
		}
		if err := n.Move(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, _, err = g.Get().TryReserve(1)
		if clean != (err == nil) {
			t.Errorf("clean %v: %v", clean, err)
		}
		if !clean && !errors.Is(g.Explain(err), ErrMoving) {
			t.Errorf("%v", g.Explain(err))
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		w.now += 1000
		if err := n.Owner().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.Move(t.Context()); err != nil {
			t.Fatal(err)
		}
		claim, _ := n.Owner().Claim()
		if got := n.id(t, g); g.Get() == old || g.Get().number != claim.Number() || got <= claim.After() {
			t.Errorf("an id at %d with number %d, whose claim begins after %d", got, g.Get().number, claim.After())
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := g.Get().TryReserve(1); !errors.Is(g.Explain(err), tick.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// The number is returned only after all generators are closed and the file has forgotten it.
func TestOrderOfClose(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "marks")
	n := w.start(t, path, 1)
	g := n.add(t, "", true)
	n.id(t, g)
	checked := false
	n.owner.Store = swapping{w, func() {
		checked = true
		if _, _, _, err := g.Get().TryReserve(1); !errors.Is(err, tick.ErrClosed) {
			t.Errorf("the generator still makes ids: %v", err)
		}
		if n.Marks().Number().Generation != 0 {
			t.Error("the file still has the number")
		}
	}}
	if err := n.Close(); err != nil || !checked {
		t.Error(err, checked)
	}
}

type swapping struct {
	*world
	before func()
}

func (s swapping) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	s.before()
	return s.world.Swap(ctx, have, write)
}

func TestOpenFails(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "marks")
	if _, err := Open[*generator](Config{Path: missing}); err == nil {
		t.Error("opened without a folder")
	}
	if _, err := OpenOn[*generator](disk{}, nil, 0, Config{Path: missing, Numbers: &workers.Config{}}); err == nil {
		t.Error("opened on a disk without a folder")
	}
	c := Config{Path: filepath.Join(t.TempDir(), "marks"), Numbers: &workers.Config{Hold: 1}}
	if _, err := OpenOn[*generator](disk{}, nil, 0, c); err == nil {
		t.Error("opened with a hold of 1 ns")
	}
	for name, c := range map[string]Config{
		"a hold of 1 ns": {Numbers: &workers.Config{Hold: 1}},
		"a number that does not fit": {
			Fits:    func(uint64, []workers.Entry) error { return errAny },
			Numbers: &workers.Config{Store: newWorld(), Prefix: "p", Hold: hold},
		},
	} {
		c.Path = filepath.Join(t.TempDir(), "marks")
		s, err := Open[*generator](c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Claim(t.Context()); err == nil {
			t.Errorf("claimed with %s", name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The Log and Memory of the Config are used.
func TestConfig(t *testing.T) {
	w, memory, log := newWorld(), &memory{}, &counter{}
	w.copied()
	s, err := OpenOn[*generator](disk{}, w.sleep, 0, Config{
		Path: filepath.Join(t.TempDir(), "marks"), Clock: w.clock, Log: slog.New(log),
		Numbers: &workers.Config{Store: w, Prefix: "p", Hold: hold, Memory: memory},
	})
	if err == nil {
		err = s.Owner().Step(t.Context())
	}
	if err != nil || memory.kept == nil {
		t.Fatalf("%v; the memory has %v", err, memory.kept)
	}
	w.copied()
	if err := s.Owner().Step(t.Context()); err == nil || log.Load() == 0 {
		t.Errorf("%v; %d lines are logged", err, log.Load())
	}
}

type memory struct{ kept *workers.Kept }

func (m *memory) Number() *workers.Kept          { return m.kept }
func (m *memory) Remember(k *workers.Kept) error { m.kept = k; return nil }
func (m *memory) Latest() uint64                 { return 0 }

// Explain changes only the error of a generator that Move has closed.
func TestExplain(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		numbered, closing bool
		err, want         error
	}{
		{true, false, tick.ErrClosed, ErrMoving},
		{true, false, other, other},
		{false, false, tick.ErrClosed, tick.ErrClosed},
		{true, true, tick.ErrClosed, tick.ErrClosed},
	} {
		set := &Set[*generator]{}
		set.open, set.stop = context.WithCancel(t.Context())
		if c.closing {
			set.stop()
		}
		g := &Generator[*generator]{set: set, numbered: c.numbered}
		if got := g.Explain(c.err); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestMoveNothing(t *testing.T) {
	w := newWorld()
	s, err := OpenOn[*generator](disk{}, w.sleep, 0, Config{
		Path: filepath.Join(t.TempDir(), "marks"), Clock: w.clock,
		Numbers: &workers.Config{Store: w, Prefix: "p", Hold: hold},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Move(t.Context()); err != nil { // there is no number yet
		t.Error(err)
	}
	if err := s.Owner().Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := node{s, w}
	g := n.add(t, "", true)
	for range 2 {
		if err := s.Move(t.Context()); err != nil || w.closed > 0 || len(w.opened) != 1 {
			t.Error(err, w.closed, w.opened)
		}
	}
	n.id(t, g)
}

// moving returns a node that has lost its number and claimed another, which it can use in a second.
func moving(t *testing.T, clean bool) (*world, node, *Generator[*generator]) {
	w := newWorld()
	n := w.start(t, filepath.Join(t.TempDir(), "marks"), 2)
	g := n.add(t, "", true)
	n.id(t, g)
	claim, _ := n.Owner().Claim()
	if clean {
		if _, err := workers.Release(t.Context(), w, "p", claim.Number(), w.now); err != nil {
			t.Fatal(err)
		}
	} else {
		w.copied()
	}
	w.data["p/floor"] = workers.Floor{Mark: w.now + 1000, Nonce: 1, Places: founded.Places}.String()
	if err := n.Owner().Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next, _ := n.Owner().Claim(); next == claim || next.After() != w.now+1000 {
		t.Fatalf("the claim is %+v", next)
	}
	return w, n, g
}

// A generator that waits for its first number to begin, as after a floor that is too late, begins with the
// next number once that one is lost.
func TestAddLosesNumber(t *testing.T) {
	w := newWorld()
	far := workers.Floor{Since: w.now + 1e6, Mark: w.now + 1e8, Nonce: 1, Places: founded.Places}
	w.data["p/floor"] = far.String()
	n := w.start(t, filepath.Join(t.TempDir(), "marks"), 2)
	withdrawn := false
	w.sleeps = func(ctx context.Context) {
		if withdrawn {
			return
		}
		withdrawn = true
		f := workers.Floor{Since: w.now - 1, Mark: w.now + 1000, Nonce: ^far.Nonce, Places: founded.Places}
		w.data["p/floor"] = f.String()
		if err := n.owner.Step(ctx); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
	}
	n.add(t, "", true)
	if len(w.opened) != 2 || w.opened[0] == w.opened[1] || w.now >= far.Since {
		t.Errorf("opened with the numbers %v, after %d ms", w.opened, w.now-someTime)
	}
}

// The old generator is used until the next one may begin. If the number is in doubt, the next one is
// opened immediately, and waits while it opens. The old one is closed only once.
func TestMoveWaits(t *testing.T) {
	for _, clean := range []bool{true, false} {
		w, n, g := moving(t, clean)
		old, begin, asked := g.Get(), w.now, 0
		w.sleeps = func(context.Context) {
			waits := len(w.opened) == 1 // if not, the next generator waits while it opens
			if waits {
				asked++
			}
			if _, _, _, err := old.TryReserve(1); waits != (err == nil) {
				t.Errorf("clean %v: during the wait, the old generator returned %v; opened %v", clean, err, w.opened)
			}
		}
		w.fails = errors.New("not yet")
		if clean {
			w.fails = nil
		} else if err := n.Move(t.Context()); err == nil || g.Get() != old {
			t.Errorf("Move returned %v; the generator is %p, and was %p", err, g.Get(), old)
		}
		w.opened = w.opened[:1]
		for range 2 {
			if err := n.Move(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if clean != (asked > 0) || clean != (w.when > begin+1000) || w.now <= begin+1000 || w.closed != 1 ||
			len(w.opened) != 2 {
			t.Errorf("clean %v: waited %d times, for %d ms; %d closed, opened %v", clean, asked, w.now-begin, w.closed, w.opened)
		}
		n.id(t, g)
	}
}

// Once it has a number, a start waits for the store, unless the store refuses.
func TestCompareWaits(t *testing.T) {
	w := newWorld()
	n := w.start(t, filepath.Join(t.TempDir(), "marks"), 2)
	claim, _ := n.Owner().Claim()
	n.fits = func(number uint64, all []workers.Entry) error {
		if number != claim.Number() || len(all) != 1 || all[0].Number != number {
			t.Errorf("the number is %d, the store has %+v", number, all)
		}
		return errAny
	}
	w.down = errors.New("down")
	w.sleeps = func(context.Context) { w.down = nil }
	if err := n.compare(t.Context()); err != errAny {
		t.Error(err)
	}
	w.down, w.sleeps = workers.ErrRefused, nil
	if err := n.compare(t.Context()); !errors.Is(err, workers.ErrRefused) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("late")
	w.down, w.sleeps = errors.New("down"), func(context.Context) { cancel(late) }
	if err := n.compare(ctx); !errors.Is(err, w.down) || !errors.Is(err, late) {
		t.Error(err)
	}
}

// If a move is canceled, the old generator stays open.
func TestMoveCanceled(t *testing.T) {
	w, n, g := moving(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	w.sleeps = func(context.Context) { cancel() }
	if err := n.Move(ctx); !errors.Is(err, context.Canceled) || w.closed > 0 {
		t.Errorf("%v; %d closed", err, w.closed)
	}
	n.id(t, g)
}

// A move ends immediately if the number to which it moves is lost. If that number was lost before,
// the move does not begin.
func TestMoveLostAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, _ := moving(t, true)
		lose := func() {
			w.copied()
			if err := n.Owner().Step(t.Context()); err == nil {
				t.Error("Step claimed a number, although none is free")
			}
		}
		w.sleeps = func(ctx context.Context) {
			lose()
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
				t.Error("Move is still waiting for a number that is lost")
			}
		}
		if err := n.Move(context.WithoutCancel(t.Context())); err == nil {
			t.Error("Move succeeded after the number was lost")
		}
		if err := n.Move(t.Context()); err != nil || len(w.opened) != 1 {
			t.Errorf("%v, opened %v", err, w.opened)
		}
	})
}

// The goroutine of a move ends with the move.
func TestMoveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n, _ := moving(t, true)
		if err := n.Move(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// Only errors from closing a generator or returning a number are logged.
func TestEndIsLogged(t *testing.T) {
	for _, fails := range []error{nil, errAny} {
		w, n, _ := moving(t, true)
		logs := &counter{}
		n.log, w.ends = slog.New(logs), fails
		want := int32(0)
		if fails != nil {
			want = 1
		}
		if err := n.Move(t.Context()); err != nil || logs.Load() != want {
			t.Errorf("%v: Move returned %v; %d warnings and errors, want %d", fails, err, logs.Load(), want)
		}
		w.down = fails
		if err := n.Close(); err != nil || logs.Load() != 2*want {
			t.Errorf("%v: Close returned %v; %d warnings and errors, want %d", fails, err, logs.Load(), 2*want)
		}
	}
}

// following returns generators that follow the number. Whenever a generator is reopened, the
// function again is called first.
func following(t *testing.T, numbers uint64, again func(context.Context) error) (
	w *world, s *Set[*generator], g *Generator[*generator], logs *counter,
) {
	w, logs = newWorld(), &counter{}
	s, err := Open[*generator](Config{
		Path:    filepath.Join(t.TempDir(), "marks"),
		Numbers: &workers.Config{Store: w, Prefix: "p", Last: numbers - 1, Hold: hold},
	})
	if err == nil {
		s.log = slog.New(logs) // not in the Config, so that records of the owner are not counted
		err = s.Claim(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	open := func(ctx context.Context, name string, number uint64, bound durable.Bound) (*generator, error) {
		if opened++; opened > 1 {
			if err := again(ctx); err != nil {
				return nil, err
			}
		}
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, nil)
		if err != nil {
			return nil, err
		}
		k, err := durable.Open(ctx, name, ids, durable.Options{Marks: s.Marks(), Bound: bound})
		return &generator{ids, k, number, nil}, err
	}
	if g, err = s.Add(t.Context(), "", true, open); err != nil {
		t.Fatal(err)
	}
	s.Follow()
	return w, s, g, logs
}

// released releases the number, and waits for the next.
func released(t *testing.T, w *world, o *workers.Owner) {
	claim, changed := o.Claim()
	if _, err := workers.Release(t.Context(), w, "p", claim.Number(), w.now); err != nil {
		t.Fatal(err)
	}
	<-changed
}

// The generators follow the number, and retry once a second. A lasting error is logged once.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := 0
		w, s, g, logs := following(t, 10, func(context.Context) error {
			if tried++; tried <= 2 {
				return errors.New("not yet")
			}
			return nil
		})
		released(t, w, s.Owner())
		time.Sleep(3 * retryAfter)
		synctest.Wait()
		claim, _ := s.Owner().Claim()
		if got := g.Get().number; got != claim.Number() || tried != 3 || logs.Load() != 1 {
			t.Errorf("the generator has number %d, the claim %d; opened %d more times; %d warnings and errors",
				got, claim.Number(), tried, logs.Load())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The generators close when the number is lost and none is free.
func TestFollowLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s, g, _ := following(t, 1, nil)
		w.copied()
		claim, _ := s.Owner().Claim()
		<-claim.Lost().Done()
		time.Sleep(time.Second)
		if _, _, _, err := g.Get().TryReserve(1); !errors.Is(g.Explain(err), ErrMoving) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close ends a move, waits for it, and does not return its error.
func TestCloseEndsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		w, s, _, logs := following(t, 10, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return ctx.Err()
		})
		released(t, w, s.Owner())
		synctest.Wait()
		if err := s.Close(); err != nil || !ended || logs.Load() > 0 {
			t.Errorf("%v; the move has ended: %v; %d warnings and errors", err, ended, logs.Load())
		}
	})
}

func TestFollowNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open[*generator](Config{Path: filepath.Join(t.TempDir(), "marks")})
		if err != nil {
			t.Fatal(err)
		}
		if s.Follow(); s.log == nil {
			t.Error("the log is nil")
		}
		synctest.Wait() // a goroutine that follows would have panicked, as there is no owner
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
