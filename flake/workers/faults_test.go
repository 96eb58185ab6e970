package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// deaf is a store that writes nothing and returns no error.
type deaf struct {
	*world
	asked int
}

func (s *deaf) Swap(context.Context, map[string]string, map[string]string) (bool, error) {
	s.asked++
	return false, nil
}

// If all attempts to write fail, so does the call, and there is no new claim, mark or floor.
func TestNotWritten(t *testing.T) {
	for _, want := range []error{errNever, errContended} {
		w := newWorld()
		var store Store = w
		if want == errContended {
			store = &deaf{world: w}
		}
		never := func(string) error { return errNever }
		w.fail = never
		o := w.owner(t, "a")
		real := o.Store
		o.Store = store
		if err := o.Step(t.Context()); !errors.Is(err, want) {
			t.Errorf("a claim: %v", err)
		}
		if c, _ := o.Claim(); c != nil || len(w.data) > 1 {
			t.Errorf("claimed %+v", c)
		}
		o.Store, w.fail = real, nil
		c := step(t, o)
		was := w.value(t, c.Number())
		o.Store, w.fail = store, never
		w.now += 1000
		if err := o.Step(t.Context()); !errors.Is(err, want) || c.Milli() != was.Mark {
			t.Errorf("a mark: %v, at %d", err, c.Milli())
		}
		_, err := AfterRestore(t.Context(), store, "p", w.restored(time.Second))
		if want == errNever && !errors.Is(err, want) || err == nil || w.data[keys{"p"}.floor()] != founded.String() {
			t.Errorf("a floor: %v", err)
		}
		_, err = Release(t.Context(), store, "p", c.Number(), w.now)
		if want == errNever && !errors.Is(err, want) || err == nil {
			t.Errorf("a release: %v", err)
		}
		if err := o.Close(t.Context()); !errors.Is(err, want) || w.value(t, c.Number()) != was {
			t.Errorf("a close: %v", err)
		}
		if s, ok := store.(*deaf); ok && s.asked != 5*tries+1 {
			t.Errorf("%d attempts in five calls", s.asked)
		}
	}
}

// AfterRestore succeeds if only the answer was lost, and fails if another process was first.
func TestFloorAnswers(t *testing.T) {
	key := keys{"p"}.floor()
	other := Floor{1, 2, 3, founded.Places}.String()
	for name, test := range map[string]struct {
		fail func(w *world) error
		ok   bool
	}{
		"the write happened":     {func(w *world) error { return errHappened }, true},
		"the first write failed": {func(w *world) error { w.fail = nil; return errNever }, true},
		"no more answers":        {func(w *world) error { w.down = errNever; return errNever }, false},
		"another was faster":     {func(w *world) error { w.data[key] = other; return nil }, false},
		"another, and no answer": {func(w *world) error { w.data[key] = other; return errNever }, false},
	} {
		w := newWorld()
		w.fail = func(string) error { return test.fail(w) }
		f, err := AfterRestore(t.Context(), w, "p", w.restored(time.Second))
		w.down = nil
		if got := w.data[key]; (err == nil) != test.ok || (got == f.String()) != test.ok {
			t.Errorf("%s: %v, and the floor is %q", name, err, got)
		}
	}
}

// If a floor is written during a claim, the claim starts again above it.
func TestFloorMeanwhile(t *testing.T) {
	w := newWorld()
	f := Floor{w.now, w.now + testHold, 7, founded.Places}
	w.fail = func(string) error { w.data[keys{"p"}.floor()] = f.String(); w.fail = nil; return nil }
	o := w.owner(t, "a", func(c *Config) { c.Last = 1 })
	if err := o.Step(t.Context()); !errors.Is(err, errContended) {
		t.Error(err)
	}
	if c := step(t, o); c.After() != f.Mark {
		t.Errorf("ids after %d, and the floor is %v", c.After(), f)
	}
}

// A running node that finds a floor stores it on its disk, with its number.
func TestFloorIsKept(t *testing.T) {
	w, d := newWorld(), &disk{}
	a := w.owner(t, "a", d.use)
	c := step(t, a)
	w.data[keys{"p"}.floor()] = Floor{c.Milli(), c.Milli() + testHold, 7, founded.Places}.String()
	w.now += 1000
	if step(t, a) != c || d.kept.Floor != 7 || d.kept.Mark != c.Milli() {
		t.Errorf("the disk has %+v", d.kept)
	}
	if c := step(t, w.owner(t, "a", d.use)); !c.Resumed() {
		t.Error("the node does not resume its claim")
	}
}

// A value of an unknown version ends a claim, and no node overwrites it. A floor of an unknown version
// does not: ids end at the mark.
func TestForeignLater(t *testing.T) {
	for _, key := range []string{keys{"p"}.number(1), keys{"p"}.floor()} {
		lost := key == keys{"p"}.number(1)
		w := newWorld()
		a := w.owner(t, "a", func(c *Config) { c.Last = 1 })
		c := step(t, a)
		w.data[key] = "2 hello"
		if err := a.Step(t.Context()); !errors.Is(err, ErrRefused) || c.IsLost() != lost || w.data[key] != "2 hello" {
			t.Errorf("%v, and the store has %q", err, w.data[key])
		}
		_, err := ReadFloor(t.Context(), w, "p")
		if foreign := key == (keys{"p"}).floor(); foreign != errors.Is(err, ErrRefused) {
			t.Errorf("ReadFloor: %v", err)
		}
		_, err = Release(t.Context(), w, "p", 1, w.now)
		if key == c.key && !errors.Is(err, ErrRefused) || w.data[key] != "2 hello" {
			t.Errorf("a release: %v, and the store has %q", err, w.data[key])
		}
		for _, change := range []func(context.Context, Store, string, Restored) (Floor, error){AfterRestore, Withdraw} {
			if _, err := change(t.Context(), w, "p", w.restored(0)); !errors.Is(err, ErrRefused) || w.data[key] != "2 hello" {
				t.Errorf("a floor: %v, and the store has %q", err, w.data[key])
			}
		}
	}
}

// listless is a store that cannot list the keys with a prefix.
type listless struct {
	*world
	prefix string
}

func (s listless) List(ctx context.Context, prefix string) (map[string]string, error) {
	if strings.HasPrefix(prefix, s.prefix) {
		return nil, errNever
	}
	return s.world.List(ctx, prefix)
}

// getless is a store that cannot be read.
type getless struct{ *world }

func (s getless) Get(context.Context, ...string) ([]string, error) { return []string{""}, errNever }

// astray is a store that does not know its cluster.
type astray struct{ *world }

func (s astray) Cluster(context.Context) (string, error) { return "", errNever }

// Without answers, nothing is claimed or released, and reads fail.
func TestNoAnswer(t *testing.T) {
	w := newWorld()
	o := w.owner(t, "a")
	for _, s := range []Store{listless{w, ""}, listless{w, keys{"p"}.allUsed()}, listless{w, keys{"p"}.numbers()},
		getless{w}, astray{w}} {
		o.Store = s
		if err := o.Step(t.Context()); !errors.Is(err, errNever) || len(w.data) > 1 {
			t.Errorf("%T: %v, %v", s, err, w.data)
		}
	}
	f := Floor{1, 2, 3, founded.Places}
	w.data[keys{"p"}.floor()] = f.String()
	if got, err := ReadFloor(t.Context(), w, "p"); got != f || err != nil {
		t.Errorf("the floor is %v, %v", got, err)
	}
	w.down = errNever
	_, floorErr := ReadFloor(t.Context(), w, "p")
	_, listErr := List(t.Context(), w, "p")
	_, releaseErr := Release(t.Context(), w, "p", 1, w.now)
	_, withdrawErr := Withdraw(t.Context(), w, "p", w.restored(0))
	for i, err := range []error{floorErr, listErr, releaseErr, withdrawErr} {
		if !errors.Is(err, errNever) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// An owner keeps the sign of a restore until the floor is written.
func TestSignStays(t *testing.T) {
	w := newWorld()
	s := &signing{dated: dated{world: w}}
	a := w.owner(t, "a", func(c *Config) { c.Store = s })
	c := step(t, a)
	s.sign = "lower"
	for _, fail := range []func(){
		func() { w.down = errNever },
		func() { w.down, w.fail = nil, func(string) error { return errNever } },
	} {
		fail()
		if err := a.Step(t.Context()); !errors.Is(err, errNever) || w.data[keys{"p"}.floor()] != founded.String() {
			t.Errorf("%v, with the floor %q", err, w.data[keys{"p"}.floor()])
		}
	}
	w.fail = nil
	if step(t, a) != c || w.data[keys{"p"}.floor()] == founded.String() {
		t.Error("no floor is written")
	}
}

// warns is a log that counts warnings and errors.
type warns struct{ strings.Builder }

func (w *warns) use(c *Config) { c.Log = slog.New(slog.NewTextHandler(w, nil)) }

func (w *warns) count() (n int) {
	n = strings.Count(w.String(), "level=WARN") + strings.Count(w.String(), "level=ERROR")
	w.Reset()
	return n
}

// A full disk does not prevent a claim, and is logged.
func TestFullDisk(t *testing.T) {
	for _, full := range []error{nil, errNever} {
		w, d, logs := newWorld(), &disk{full: full}, &warns{}
		a := w.owner(t, "a", d.use, logs.use)
		c := step(t, a)
		one := 0
		if full != nil {
			one = 1
		}
		if got := logs.count(); got != one || (d.kept != nil) != (full == nil) {
			t.Errorf("disk error %v: %d warnings and errors after the claim; kept %v", full, got, d.kept)
		}
		if _, err := Release(t.Context(), w, "p", c.Number(), w.now); err != nil {
			t.Fatal(err)
		}
		step(t, a)
		if got := logs.count(); got != 1+3*one { // the loss; and failures to store a mark, the loss and the next number
			t.Errorf("disk error %v: %d warnings and errors after the loss", full, got)
		}
	}
}

// The error names the first owners, and only those in the range.
func TestNoneFree(t *testing.T) {
	w := newWorld()
	for n := range uint64(12) {
		v := Value{Mark: w.now + 1000*n, Generation: 1, Token: 1, Name: fmt.Sprint("n", n, ".")}
		w.data[keys{"p"}.number(n)] = v.String()
	}
	for _, test := range []struct {
		first, last uint64
		named, more int
	}{{2, 9, 8, 0}, {1, 10, 8, 2}} {
		err := w.owner(t, "a", func(c *Config) { c.First, c.Last = test.first, test.last }).Step(t.Context())
		if err == nil {
			t.Fatal("a number was claimed, although none is free")
		}
		text := err.Error()
		if got := strings.Count(text, ". until "); got != test.named ||
			strings.Contains(text, fmt.Sprint(test.more, " more")) != (test.more > 0) ||
			!strings.Contains(text, "may be free at "+show(w.now+1000*test.first)) {
			t.Errorf("%d to %d: %d are named: %s", test.first, test.last, got, text)
		}
	}
}

// A caller that waits for a mark fails if a step fails, with its error, or if the number is lost.
func TestExtendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		config := w.owner(t, "a").Config
		config.Clock = func() uint64 { return uint64(time.Now().UnixMilli()) }
		o, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := o.Claim()
		gone, why := errors.New("gone"), errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if err := c.Extend(ctx, c.Milli()+1_000_000); !errors.Is(err, gone) || errors.Is(err, tick.ErrTimestampNotSaved) {
			t.Errorf("Extend with a canceled context: %v", err)
		}
		o.steps.Settle(why)
		err = c.Extend(t.Context(), c.Milli()+1_000_000)
		if !errors.Is(err, why) || !errors.Is(err, tick.ErrTimestampNotSaved) {
			t.Errorf("after a failed step: %v", err)
		}
		if err := c.Extend(t.Context(), c.Milli()); err != nil {
			t.Errorf("up to the current mark: %v", err)
		}
		o.steps.Settle(nil)
		if _, err := Release(t.Context(), w, "p", c.Number(), config.Clock()); err != nil {
			t.Fatal(err)
		}
		if err := c.Extend(t.Context(), c.Milli()+1); !errors.Is(err, tick.ErrTimestampNotSaved) || !c.IsLost() {
			t.Errorf("Extend of a lost number: %v", err)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := Open(t.Context(), Config{First: 2, Last: 1}); err == nil {
			t.Error("opened without a number")
		}
	})
}
