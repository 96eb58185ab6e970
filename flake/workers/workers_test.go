package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// memStore is a store in memory. What fail is called with comes before each write; its
// error is that of the write, which happens all the same if it is errHappened.
type memStore struct {
	mu   sync.Mutex
	data map[string]string
	fail func(value string) error
	down error
}

var (
	errHappened = errors.New("the answer is lost")
	errNever    = errors.New("it was not heard")
)

func (s *memStore) List(_ context.Context, prefix string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for key, text := range s.data {
		if strings.HasPrefix(key, prefix) {
			all[key] = text
		}
	}
	return all, s.down
}

func (s *memStore) Get(_ context.Context, keys ...string) (texts []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		texts = append(texts, s.data[key])
	}
	return texts, s.down
}

func (s *memStore) Swap(_ context.Context, have map[string]string, key, value string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.fail != nil {
		err = s.fail(value)
	}
	if err = errors.Join(err, s.down); err != nil && !errors.Is(err, errHappened) {
		return false, err
	}
	for key, text := range have {
		if s.data[key] != text {
			return false, err
		}
	}
	s.data[key] = value
	return err == nil, err
}

// set changes something while others run.
func (s *memStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *memStore) value(t *testing.T, n uint64) Value {
	t.Helper()
	v, err := parseValue(s.data[keys{"p"}.number(n)])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const testHold = 600_000 // ms

// world is a store, and a clock that all owners go by.
type world struct {
	memStore
	now    uint64
	random uint64
}

func newWorld() *world {
	return &world{memStore: memStore{data: map[string]string{}}, now: 1_700_000_000_000}
}

func (w *world) owner(t *testing.T, name string, change ...func(*Config)) *Owner {
	t.Helper()
	c := Config{Store: w, Prefix: "p", First: 1, Last: 2, Name: name,
		Clock: func() (now uint64) { w.set(func() { now = w.now }); return now }, Random: func() uint64 { w.random++; return w.random }}
	for _, f := range change {
		f(&c)
	}
	o, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func step(t *testing.T, o *Owner) *Claim {
	t.Helper()
	if err := o.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, _ := o.Claim()
	return c
}

func TestClaimAndExtend(t *testing.T) {
	w := newWorld()
	a, b := w.owner(t, "a"), w.owner(t, "b")
	ca, cb := step(t, a), step(t, b)
	if ca.Number() == cb.Number() {
		t.Fatalf("both have %d", ca.Number())
	}
	if ca.After(false) != 0 || ca.Milli() != w.now+testHold {
		t.Errorf("ids from %d to %d", ca.After(false), ca.Milli())
	}
	w.now += 1000
	if step(t, a) != ca || ca.Milli() != w.now+testHold || w.value(t, ca.Number()).Mark != ca.Milli() {
		t.Errorf("extended to %d", ca.Milli())
	}
	w.now -= 5000 // the mark never goes back
	if before := ca.Milli(); step(t, a).Milli() != before {
		t.Errorf("the mark went back to %d", ca.Milli())
	}
	if err := w.owner(t, "c").Step(t.Context()); !errors.Is(err, ErrNoneFree) || !strings.Contains(err.Error(), fmt.Sprintf("%d by b until 2023-11-14T22:23:20.000Z", cb.Number())) {
		t.Error(err)
	}
}

// A number is another's once its mark is past, and its ids begin there. The former owner
// keeps what it has, and claims another.
func TestLost(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	ca := step(t, a)
	step(t, w.owner(t, "b"))
	w.now = ca.Milli() + 1
	cc := step(t, w.owner(t, "c"))
	if cc.After(true) != w.now-1 || cc.Milli() != w.now+testHold {
		t.Errorf("ids from %d to %d", cc.After(true), cc.Milli())
	}
	if cc.Number() != ca.Number() { // the other's is past as well
		step(t, w.owner(t, "d"))
	}
	w.now += testHold / 2
	before := ca.Milli()
	if err := a.Step(t.Context()); !errors.Is(err, ErrNoneFree) || !strings.Contains(err.Error(), "is lost") {
		t.Error(err)
	}
	<-ca.Lost()
	if ca.Milli() != before {
		t.Errorf("the mark moved from %d to %d", before, ca.Milli())
	}
	_, changed := a.Claim()
	w.now += testHold
	if c := step(t, a); c == ca || c.After(false) == 0 {
		t.Errorf("after the loss: %+v", c)
	}
	<-changed
}

func TestLongestIdleFirst(t *testing.T) {
	w := newWorld()
	for n, ago := range map[uint64]uint64{1: 5, 2: 9, 3: 7} {
		w.data[keys{"p"}.number(n)] = Value{Mark: w.now - ago, Generation: 1, Token: n, Name: fmt.Sprint(n)}.String()
	}
	three := func(c *Config) { c.Last = 3 }
	if n := step(t, w.owner(t, "1", three)).Number(); n != 1 {
		t.Errorf("the one of the same name is 1, and %d was claimed", n)
	}
	if n := step(t, w.owner(t, "x", three)).Number(); n != 2 {
		t.Errorf("2 was idle longest, and %d was claimed", n)
	}
	if n := step(t, w.owner(t, "y", func(c *Config) { c.Last = 4 })).Number(); n != 4 {
		t.Errorf("4 was never claimed, and %d was", n)
	}
}

func TestLostAnswers(t *testing.T) {
	for name, happens := range map[string]error{"it happened": errHappened, "it did not": errNever} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			o := w.owner(t, "a")
			once := func(string) error { w.fail = nil; return happens }
			w.fail = once
			c := step(t, o)
			if v := w.value(t, c.Number()); v != c.entry.Value || v.Generation != 1 {
				t.Errorf("claimed %v, and the store has %v", c.entry.Value, v)
			}
			w.fail, w.now = once, w.now+1000
			if step(t, o) != c || c.Milli() != w.now+testHold || w.value(t, c.Number()).Mark != c.Milli() {
				t.Errorf("extended to %d", c.Milli())
			}
		})
	}
}

// A claim that was written, but of which nothing could be read for a while, is the node's.
func TestClaimHeardOfLater(t *testing.T) {
	w := newWorld()
	o := w.owner(t, "a")
	w.fail = func(string) error { w.down = errNever; return errHappened }
	w.down = nil
	if err := o.Step(t.Context()); err == nil {
		t.Fatal("claimed without an answer")
	}
	if c, _ := o.Claim(); c != nil {
		t.Fatal("a claim that nobody confirmed")
	}
	w.fail, w.down = nil, nil
	step(t, o)
	if len(w.data) != 1 {
		t.Errorf("two numbers were claimed: %v", w.data)
	}
}

func TestStop(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	w.now += 1000
	if err := a.Close(t.Context(), w.now-1); err != nil {
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark != w.now-1 {
		t.Errorf("left %v", v)
	}
	b := w.owner(t, "b", func(o *Config) { o.First, o.Last = c.Number(), c.Number() })
	if got := step(t, b).After(true); got != w.now-1 {
		t.Errorf("the next one's ids are after %d", got)
	}
	if err := b.Close(t.Context(), 0); err != nil { // who does not know leaves the mark
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark != w.now+testHold {
		t.Errorf("left %v", v)
	}
}

func memory(t *testing.T, path string) func(*Config) {
	t.Helper()
	m, err := OpenMemory(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return func(c *Config) { c.Memory = m }
}

func TestResume(t *testing.T) {
	w := newWorld()
	path := filepath.Join(t.TempDir(), "worker")
	use := memory(t, path)
	first := step(t, w.owner(t, "a", use))
	before := w.value(t, first.Number())
	var m Config
	use(&m)
	m.Memory.Close() // a crash
	w.now += 1000
	second := step(t, w.owner(t, "a", memory(t, path)))
	after := w.value(t, first.Number())
	if !second.Resumed() || second.Number() != first.Number() || after.Token == before.Token || after.Generation != 2 {
		t.Errorf("resumed: %v, %v after %v", second.Resumed(), after, before)
	}
	// With marks of its own it goes on at once, without above what may have been made.
	if second.After(true) != 0 || second.After(false) != before.Mark {
		t.Errorf("after %d and %d", second.After(true), second.After(false))
	}
	// Who has an older copy of the disk gets another number, and so does who finds that
	// somebody else has had it.
	copied := memory(t, filepath.Join(t.TempDir(), "copy"))
	copied(&m)
	m.Memory.kept = kept{first.Number(), before.Generation, before.Token, 0, 0}
	if c := step(t, w.owner(t, "a", copied)); c.Resumed() || c.Number() == first.Number() {
		t.Errorf("with a copy: %+v", c.entry)
	}
}

func TestForgottenMark(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	old := maps.Clone(w.data)
	w.now += 1000
	step(t, a)
	for name, data := range map[string]map[string]string{"an earlier value": old, "nothing": {}} {
		w.data = maps.Clone(data)
		w.now += 1000
		if step(t, a) != c || w.value(t, c.Number()).Mark != w.now+testHold {
			t.Errorf("%s: the store has %v", name, w.data)
		}
	}
	// Once its mark is past, others may have had it.
	w.data, w.now = maps.Clone(old), c.Milli()+1
	if err := a.Step(t.Context()); !errors.Is(err, errPast) {
		t.Error(err)
	}
	// Nor may it write over one who may have ids above its mark.
	w = newWorld()
	b := w.owner(t, "b")
	cb := step(t, b)
	w.data[cb.key] = Value{Mark: cb.Milli() + 1, Generation: cb.entry.Generation - 1, Token: 99, Name: "x"}.String()
	if err := b.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "x has it") {
		t.Error(err)
	}
}

func TestAfterRestore(t *testing.T) {
	w := newWorld()
	a, b := w.owner(t, "a"), w.owner(t, "b")
	ca, cb := step(t, a), step(t, b)
	w.now += testHold / 2
	step(t, a)
	f, err := AfterRestore(t.Context(), w, "p", testHold*time.Millisecond, testHold/4*time.Millisecond*3, w.now, 0)
	if err != nil || f.Since != w.now+testHold/4*3 || f.Mark != f.Since+testHold {
		t.Fatalf("%v, %v", f, err)
	}
	if step(t, a) != ca {
		t.Error("who was ahead has lost its number")
	}
	if err := b.Step(t.Context()); !errors.Is(err, errPast) {
		t.Error(err)
	}
	<-cb.Lost()
	w.now = cb.Milli() + 1
	if c := step(t, b); c.After(true) != f.Mark {
		t.Errorf("a new claim begins after %d, not %d", c.After(true), f.Mark)
	}
	again, err := AfterRestore(t.Context(), w, "p", time.Second, 0, w.now, 5)
	if err != nil || again != (Floor{f.Mark + 1, f.Mark + 1001, 5}) {
		t.Errorf("the floor went to %v, %v", again, err)
	}
}

func TestRelease(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	if err := Release(t.Context(), w, "p", c.Number()); err != nil {
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark != c.Milli() {
		t.Errorf("left %v", v)
	}
	if err := a.Step(t.Context()); err == nil {
		t.Error("it does not notice")
	}
	if other := step(t, a); other.Number() == c.Number() {
		t.Error("it has it again, before the mark")
	}
	if err := Release(t.Context(), w, "p", 77); err == nil {
		t.Error("released what nobody has")
	}
}

func TestSlow(t *testing.T) {
	w := newWorld()
	c := step(t, w.owner(t, "a", func(c *Config) { c.Slow = time.Hour }))
	if c.After(true) != w.now+3_600_000 {
		t.Errorf("after %d", c.After(true))
	}
}

func TestForeign(t *testing.T) {
	k := keys{"p"}
	good := Value{Mark: 1, Generation: 2, Token: 3, Name: "a b"}.String()
	if v, err := parseValue(good); err != nil || v != (Value{1, 2, 3, false, "a b"}) {
		t.Fatalf("%v, %v", v, err)
	}
	for key, text := range map[string]string{
		k.number(1): "hello", k.number(2): "2" + good[1:], k.number(3): strings.Replace(good, "held", "lost", 1),
		"p/n/1": good, "p/other": good, k.floor(): "1 2 3", k.numbers() + "00000000000G": good,
	} {
		w := newWorld()
		w.data[key] = text
		err := w.owner(t, "a").Step(t.Context())
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %s: %v", key, text, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{First: 2, Last: 1}, {Last: 1 << 48}, {Hold: time.Millisecond}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// Without Step: the mark is moved in time, callers at the mark wait for it, and are told
// at once while it cannot be moved.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		config := w.owner(t, "a").Config
		config.Clock = func() uint64 { return uint64(time.Now().UnixMilli()) }
		o, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := o.Claim()
		first := c.Milli()
		time.Sleep(o.Hold / 3)
		synctest.Wait()
		if c.Milli() <= first {
			t.Error("the mark has not been moved")
		}
		if err := c.Extend(t.Context(), c.Milli()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := c.Extend(t.Context(), c.Milli()+1); err != nil {
			t.Error(err)
		}
		w.set(func() { w.down = errNever })
		for range 2 {
			if err := c.Extend(t.Context(), c.Milli()+1_000_000); !errors.Is(err, tick.ErrTimestampNotSaved) {
				t.Error(err)
			}
		}
		if _, err := o.State(); !errors.Is(err, errNever) {
			t.Error(err)
		}
		w.set(func() { w.down = nil })
		time.Sleep(2 * retry)
		if at, err := o.State(); err != nil || time.Since(at) > 2*retry {
			t.Error(at, err)
		}
		if err := o.Close(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if err := c.Extend(t.Context(), c.Milli()+1_000_000); !errors.Is(err, tick.ErrClosed) {
			t.Error(err)
		}
	})
}

// Who was held up until its patience had ended gets what has happened by then.
func TestHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newWorld().owner(t, "a") // which nobody steps
		looks := 0
		if err := o.await(t.Context(), func() bool { looks++; return looks > 1 }); err != nil {
			t.Errorf("the mark was moved: %v", err)
		}
		for range 100 { // select takes either
			ctx, cancel := context.WithCancelCause(t.Context())
			held := func() bool { time.Sleep(patience); cancel(errNever); return false }
			if err := o.await(ctx, held); !errors.Is(err, errNever) {
				t.Fatalf("its context has ended: %v", err)
			}
		}
		if err := o.await(t.Context(), func() bool { return false }); !errors.Is(err, errSlow) {
			t.Errorf("nothing has happened: %v", err)
		}
	})
}

// brokenOff is a store that is not there, and of which the last answer before the end comes
// too late.
type brokenOff struct{ *world }

func (s brokenOff) List(ctx context.Context, prefix string) (map[string]string, error) {
	if until, ok := ctx.Deadline(); ok && time.Until(until) < patience {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.world.List(ctx, prefix)
}

func TestOpenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		config := w.owner(t, "a").Config
		config.Last = 1
		w.down = errNever
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute has passed"))
		defer cancel()
		if _, err := Open(ctx, config); !errors.Is(err, errNever) || !strings.Contains(err.Error(), "a minute has passed") {
			t.Error(err)
		}
		broken, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		config.Store = brokenOff{w}
		if _, err := Open(broken, config); !errors.Is(err, errNever) {
			t.Errorf("the last attempt was broken off, and the one before is not told: %v", err)
		}
		config.Store = w
		w.down = ErrRefused
		if _, err := Open(t.Context(), config); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		w.down = nil
		step(t, w.owner(t, "b", func(c *Config) { c.Last = 1 }))
		if _, err := Open(t.Context(), config); !errors.Is(err, ErrNoneFree) {
			t.Error(err)
		}
		config.Wait = true
		time.AfterFunc(time.Minute, func() { w.set(func() { w.now += testHold + 1 }) })
		o, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		o.Close(t.Context(), 0)
	})
}
