package host

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"sync"
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

// world is a store that answers at once, and the clock of all nodes.
type world struct {
	mu   sync.Mutex
	data map[string]string
	now  uint64
}

func newWorld() *world { return &world{data: map[string]string{}, now: someTime} }

func (w *world) List(_ context.Context, prefix string) (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.data)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return all, nil
}

func (w *world) Get(_ context.Context, keys ...string) (texts []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		texts = append(texts, w.data[key])
	}
	return texts, nil
}

func (w *world) Swap(_ context.Context, have map[string]string, key, value string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, text := range have {
		if w.data[key] != text {
			return false, nil
		}
	}
	w.data[key] = value
	return true, nil
}

func (w *world) clock() uint64 { return w.now }

func (w *world) sleep(ctx context.Context, d time.Duration) error {
	w.now += uint64(d / time.Millisecond)
	return ctx.Err()
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

// disk is one whose locks end with a process, which is not there.
type disk struct{ mark.OS }

func (disk) Lock(string) (mark.Lock, error) { return lock{}, nil }

type lock struct{}

func (lock) Keep() (bool, error) { return false, nil }
func (lock) Close() error        { return nil }

type generator struct {
	*tick.Generator
	*durable.Keeper
	number uint64
}

func (g *generator) Close() error { return g.Keeper.Close() }

// node is a process.
type node struct {
	*Generators[*generator]
	w *world
}

func (w *world) start(t *testing.T, path string, numbers uint64) node {
	t.Helper()
	w.now++
	s, err := OpenOn[*generator](disk{}, w.sleep, 0, Config{Path: path, Clock: w.clock, Numbers: &workers.Config{
		Store: w, Prefix: "p", Last: numbers - 1, Hold: hold, Name: path,
	}})
	if err == nil {
		err = s.Step(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return node{s, w}
}

func (n node) add(t *testing.T, name string, numbered bool) *Generator[*generator] {
	t.Helper()
	g, err := n.Add(t.Context(), name, numbered, func(ctx context.Context, name string, number uint64, bound durable.Bound) (*generator, error) {
		ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1 << 10}, n.w.clock)
		if err != nil {
			return nil, err
		}
		o := durable.Options{Marks: n.Marks(), AllowableDowntime: 1e6 * time.Hour}
		if bound != nil {
			o.Bound = bound
		}
		k, err := durable.OpenOn(ctx, disk{}, n.w.sleep, name, ids, o)
		return &generator{ids, k, number}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// id makes one, later than before.
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

// A number is given back above all ids that were made with it, also by generators that are
// gone, in a process that was killed, or if the start was refused.
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
		last := n.id(t, n.add(t, "orders", true)) // and it is killed
		n = w.start(t, path, 1)
		if c, _ := n.Owner().Claim(); !c.Resumed() {
			t.Error("it claims anew after a crash")
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
		// Crash, start, clean stop, start within one hold: nobody waits.
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

// A node that stops before its first id holds nobody up, nor its own next generator.
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
		t.Errorf("it waited for %d ms", w.now-someTime)
	}
}

// Ids of a number that was released go on to its mark while the next is prepared; those of one
// in doubt end at once.
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
			for key := range w.data {
				w.data[key] = workers.Value{Mark: w.now + 1, Generation: 9, Token: 9, Name: "copy"}.String()
			}
		}
		other := w.start(t, filepath.Join(t.TempDir(), "marks"), 2) // so that there is none left
		err := n.Step(t.Context())
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
		if err := n.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.Move(t.Context()); err != nil {
			t.Fatal(err)
		}
		claim, _ := n.Owner().Claim()
		if got := n.id(t, g); g.Get() == old || g.Get().number != claim.Number() || got <= claim.After() {
			t.Errorf("an id of %d with number %d, which begins after %d", got, g.Get().number, claim.After())
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := g.Get().TryReserve(1); !errors.Is(g.Explain(err), tick.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// The number is given back only when all generators have ended, and forgotten before.
func TestOrderOfClose(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "marks")
	n := w.start(t, path, 1)
	g := n.add(t, "", true)
	n.id(t, g)
	checked := false
	n.owner.Store = swapping{w, func() {
		checked = true
		if _, _, _, err := g.Get().TryReserve(1); !errors.Is(err, tick.ErrClosed) {
			t.Errorf("it makes ids: %v", err)
		}
		if n.Marks().Number() != nil {
			t.Error("it has not forgotten the number")
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

func (s swapping) Swap(ctx context.Context, have map[string]string, key, value string) (bool, error) {
	s.before()
	return s.world.Swap(ctx, have, key, value)
}

// Without a simulator: the generators follow the number by themselves.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s, err := Open[*generator](Config{Path: filepath.Join(t.TempDir(), "marks"), Numbers: &workers.Config{Store: w, Prefix: "p", Last: 9, Hold: hold}})
		if err == nil {
			err = s.Claim(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		opened := 0
		g, err := s.Add(t.Context(), "", true, func(ctx context.Context, name string, number uint64, bound durable.Bound) (*generator, error) {
			if opened++; opened == 2 {
				return nil, errors.New("not yet")
			}
			ids, err := tick.New(tick.Shape{Last: tick.MaxLast, Unit: 1, PerTick: 1}, nil)
			if err != nil {
				return nil, err
			}
			k, err := durable.Open(ctx, name, ids, durable.Options{Marks: s.Marks(), Bound: bound})
			return &generator{ids, k, number}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Follow()
		first, changed := s.Owner().Claim()
		if _, err := workers.Release(t.Context(), w, "p", first.Number(), w.now); err != nil {
			t.Fatal(err)
		}
		<-changed
		time.Sleep(2 * again)
		synctest.Wait()
		claim, _ := s.Owner().Claim()
		if got := g.Get().number; got != claim.Number() || opened != 3 {
			t.Errorf("it has %d, and the claim is of %d; opened %d times", got, claim.Number(), opened)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
