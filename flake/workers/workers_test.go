package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// memStore is a store in memory. It calls fail before each write and returns fail's error; if that
// is errHappened, the write happens nevertheless.
type memStore struct {
	mu   sync.Mutex
	data map[string]string
	fail func(value string) error
	down error
}

var (
	errHappened = errors.New("the answer is lost")
	errNever    = errors.New("the request is lost")
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

func (s *memStore) Swap(_ context.Context, have, write map[string]string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.fail != nil {
		err = s.fail(chief(write))
	}
	if err = errors.Join(err, s.down); err != nil && !errors.Is(err, errHappened) {
		return false, err
	}
	for key, text := range have {
		if s.data[key] != text {
			return false, err
		}
	}
	maps.Copy(s.data, write)
	return err == nil, err
}

// chief returns the value of a number in a write, or else the floor.
func chief(write map[string]string) (text string) {
	for key, value := range write {
		if text == "" || strings.HasPrefix(key, keys{"p"}.numbers()) {
			text = value
		}
	}
	return text
}

// set changes the world while other goroutines use it.
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

// founded is the floor of a store that was never restored.
var founded = Floor{Places: Place("", "p")}

// world is a store, and the clock of all owners.
type world struct {
	memStore
	now    uint64
	random uint64
}

func newWorld() *world {
	return &world{memStore: memStore{data: map[string]string{keys{"p"}.floor(): founded.String()}}, now: 1_700_000_000_000}
}

func (w *world) owner(t *testing.T, name string, change ...func(*Config)) *Owner {
	t.Helper()
	c := Config{Store: w, Prefix: "p", First: 1, Last: 2, Name: name,
		Clock:  func() (now uint64) { w.set(func() { now = w.now }); return now },
		Random: func() uint64 { w.random++; return w.random }}
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
		t.Fatalf("both owners have number %d", ca.Number())
	}
	if ca.After() != w.now-testHold || ca.Milli() != w.now+testHold {
		t.Errorf("ids from %d to %d", ca.After(), ca.Milli())
	}
	w.now += 1000
	if step(t, a) != ca || ca.Milli() != w.now+testHold || w.value(t, ca.Number()).Mark != ca.Milli() {
		t.Errorf("extended to %d", ca.Milli())
	}
	w.now -= 5000 // the mark never moves back
	if before := ca.Milli(); step(t, a).Milli() != before+1 {
		t.Errorf("the mark went back to %d", ca.Milli())
	}
	if err := w.owner(t, "c").Step(t.Context()); !errors.Is(err, ErrNoneFree) ||
		!strings.Contains(err.Error(), fmt.Sprintf("%d by b until 2023-11-14T22:23:20.000Z", cb.Number())) {
		t.Error(err)
	}
}

// interrupted is a world whose next List first calls do.
type interrupted struct {
	*world
	do func()
}

func (s *interrupted) List(ctx context.Context, prefix string) (map[string]string, error) {
	if do := s.do; do != nil {
		s.do = nil
		do()
	}
	return s.world.List(ctx, prefix)
}

// A node that reads the floor just before another makes the first claim does not take the store for
// a restored one: it would write a later floor, and its ids would wait for that.
func TestFirstClaimsTogether(t *testing.T) {
	w := newWorld()
	clear(w.data)
	s := &interrupted{world: w, do: func() { step(t, w.owner(t, "a")) }}
	c := step(t, w.owner(t, "b", func(c *Config) { c.Store = s }))
	if floor := w.data[keys{"p"}.floor()]; floor != founded.String() || c.After() != w.now-testHold {
		t.Errorf("the floor is %q; ids after %d", floor, c.After())
	}
}

// preempted is a store in which another node acts just before the first write.
type preempted struct {
	*world
	do func()
}

func (s *preempted) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	if do := s.do; do != nil {
		s.do = nil
		do()
	}
	return s.world.Swap(ctx, have, write)
}

// A node claims its number although another node's first claim has just written the floor.
func TestFirstClaimPreempted(t *testing.T) {
	w := newWorld()
	clear(w.data)
	last := func(c *Config) { c.First = 2 }
	s := &preempted{world: w, do: func() { step(t, w.owner(t, "a", func(c *Config) { c.Last = 1 })) }}
	c := step(t, w.owner(t, "b", last, func(c *Config) { c.Store = s }))
	if v := w.value(t, c.Number()); v.Generation != 1 || v != c.entry.Value {
		t.Errorf("the store has %+v", v)
	}
}

// A number can be claimed once its mark has passed; the new owner's ids begin there. The former
// owner keeps its mark, and claims another number.
func TestLost(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	ca := step(t, a)
	step(t, w.owner(t, "b"))
	w.now = ca.Milli() + 1
	cc := step(t, w.owner(t, "c"))
	if cc.After() != w.now-1 || cc.Milli() != w.now+testHold {
		t.Errorf("ids from %d to %d", cc.After(), cc.Milli())
	}
	if cc.Number() != ca.Number() { // the mark of b's number has passed too
		step(t, w.owner(t, "d"))
	}
	w.now += testHold / 2
	before := ca.Milli()
	if err := a.Step(t.Context()); !errors.Is(err, ErrNoneFree) || !strings.Contains(err.Error(), "is lost") {
		t.Error(err)
	}
	<-ca.Lost().Done()
	if ca.Milli() != before {
		t.Errorf("the mark moved from %d to %d", before, ca.Milli())
	}
	_, changed := a.Claim()
	w.now += testHold
	if c := step(t, a); c == ca || c.After() == 0 {
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
		t.Errorf("1 has the owner's name, but %d was claimed", n)
	}
	if n := step(t, w.owner(t, "x", three)).Number(); n != 2 {
		t.Errorf("2 was idle longest, but %d was claimed", n)
	}
	if n := step(t, w.owner(t, "y", func(c *Config) { c.Last = 4 })).Number(); n != 4 {
		t.Errorf("4 was never claimed before, but %d was claimed", n)
	}
}

func TestLostAnswers(t *testing.T) {
	for name, happens := range map[string]error{"the write happened": errHappened, "the write did not happen": errNever} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			o := w.owner(t, "a")
			once := func(string) error { w.fail = nil; return happens }
			w.fail = once
			c := step(t, o)
			if v := w.value(t, c.Number()); v != c.entry.Value || v.Generation != 1 {
				t.Errorf("claimed %v, but the store has %v", c.entry.Value, v)
			}
			w.fail, w.now = once, w.now+1000
			if step(t, o) != c || c.Milli() < w.now+testHold || w.value(t, c.Number()).Mark != c.Milli() {
				t.Errorf("extended to %d", c.Milli())
			}
		})
	}
}

// A claim that was written belongs to the node, even if the store cannot be read for a while.
func TestClaimHeardOfLater(t *testing.T) {
	w := newWorld()
	o := w.owner(t, "a")
	w.fail = func(string) error { w.down = errNever; return errHappened }
	w.down = nil
	if err := o.Step(t.Context()); err == nil {
		t.Fatal("claimed without an answer")
	}
	if c, _ := o.Claim(); c != nil {
		t.Fatal("a claim that was not confirmed counts")
	}
	w.fail, w.down = nil, nil
	step(t, o)
	if all, err := List(t.Context(), w, "p"); len(all) != 1 || err != nil || o.pending != nil {
		t.Errorf("two numbers were claimed: %v; pending %v", w.data, o.pending)
	}
}

// A claim that was not written does not count, even if no call failed. A written claim does not
// count if the floor changes before the node reads the value.
func TestNoClaim(t *testing.T) {
	w := newWorld()
	one := func(c *Config) { c.First, c.Last = 1, 1 }
	other := Value{Mark: w.now + testHold, Generation: 1, Token: 99, Name: "b"}
	w.fail = func(string) error { w.data[keys{"p"}.number(1)] = other.String(); return nil }
	a := w.owner(t, "a", one)
	if err := a.Step(t.Context()); !errors.Is(err, errContended) {
		t.Error(err)
	}
	if c, _ := a.Claim(); c != nil || w.value(t, 1) != other {
		t.Errorf("claimed %+v", c)
	}

	w = newWorld()
	a = w.owner(t, "a", one)
	w.fail = func(string) error { w.down = errNever; return errHappened }
	if err := a.Step(t.Context()); err == nil {
		t.Fatal("claimed without an answer")
	}
	w.fail, w.down = nil, nil
	f := Floor{w.now, w.now + 2*testHold, 7, founded.Places}
	w.data[keys{"p"}.floor()] = f.String()
	if err := a.Step(t.Context()); !errors.Is(err, ErrNoneFree) {
		t.Error(err)
	}
	w.now += testHold + 1
	if c := step(t, a); c.After() != f.Mark {
		t.Errorf("ids from %d on, below the floor of %d", c.After(), f.Mark)
	}
}

func TestStop(t *testing.T) {
	w, m := newWorld(), &disk{}
	a := w.owner(t, "a", m.use)
	c := step(t, a)
	w.now += 1000
	m.latest = w.now - 1
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark != w.now-1 || *m.kept != (Kept{Prefix: "p"}) {
		t.Errorf("the store has %v, the disk %v", v, m.kept)
	}
	b := w.owner(t, "b", func(o *Config) { o.First, o.Last = c.Number(), c.Number() })
	if got := step(t, b).After(); got != w.now-1 {
		t.Errorf("the next owner's ids are after %d", got)
	}
	if err := b.Close(t.Context()); err != nil { // without a memory the mark stays
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark != w.now+testHold {
		t.Errorf("the store has %v", v)
	}
}

// disk is a [Memory]. A copy of *kept is a copy of the disk.
type disk struct {
	kept   *Kept
	latest uint64
	full   error
}

func (d *disk) use(c *Config)  { c.Memory = d }
func (d *disk) Number() *Kept  { return d.kept }
func (d *disk) Latest() uint64 { return d.latest }
func (d *disk) Remember(k *Kept) error {
	if d.full == nil {
		d.kept = k
	}
	return d.full
}

func TestResume(t *testing.T) {
	w, d := newWorld(), &disk{}
	first := step(t, w.owner(t, "a", d.use))
	before := w.value(t, first.Number())
	w.now += 1000 // after a crash
	second := step(t, w.owner(t, "a", d.use))
	after := w.value(t, first.Number())
	if !second.Resumed() || second.Number() != first.Number() || after.Token == before.Token || after.Generation != 2 {
		t.Errorf("resumed: %v, %v after %v", second.Resumed(), after, before)
	}
	if second.After() != first.After() { // a resumed claim keeps its lower bound
		t.Errorf("the resumed claim begins after %d, want %d", second.After(), first.After())
	}
	for name, change := range map[string]func(*disk, *world){
		"another's token":            func(d *disk, _ *world) { d.kept.Token++ },
		"an earlier generation":      func(d *disk, _ *world) { d.kept.Generation-- },
		"another floor":              func(d *disk, _ *world) { d.kept.Floor++ },
		"a mark unknown to the disk": func(d *disk, _ *world) { d.kept.Mark-- },
		"a disk that forgot":         func(d *disk, _ *world) { d.kept = nil },
		"a mark that is past":        func(_ *disk, w *world) { w.now = second.Milli() + 1 },
		"released by an operator": func(_ *disk, w *world) {
			if _, err := Release(t.Context(), w, "p", second.Number(), w.now); err != nil {
				t.Fatal(err)
			}
		},
	} {
		kept := *d.kept
		changed, copied := newWorld(), &disk{kept: &kept}
		changed.now, changed.random, changed.data = w.now, 1000, maps.Clone(w.data)
		change(copied, changed)
		if c := step(t, changed.owner(t, "a", copied.use)); c.Resumed() {
			t.Errorf("%s: %+v", name, c.entry)
		}
	}
}

// A node erases a number from its disk before returning it. If the store is then restored to an
// earlier state, it has the token of the claim again, although other nodes may have made ids. With
// the same token on its disk, the node could resume the claim.
func TestForget(t *testing.T) {
	w, d := newWorld(), &disk{}
	one := func(c *Config) { c.Last = 1 }
	a := w.owner(t, "a", d.use, one)
	step(t, a)
	w.now += 1000
	old := maps.Clone(w.data)
	d.latest = w.now
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.now++
	step(t, w.owner(t, "b", one))
	w.now += 1000 // b makes ids
	w.data = old
	again := w.owner(t, "a", d.use, one)
	if err := again.Step(t.Context()); !errors.Is(err, ErrNoneFree) {
		c, _ := again.Claim()
		t.Errorf("the node claimed %+v, %v", c, err)
	}
}

// If the disk is full, the number is not returned. If the store does not answer, the number is
// neither returned nor erased.
func TestNotGivenBack(t *testing.T) {
	w, d := newWorld(), &disk{}
	a := w.owner(t, "a", d.use)
	c := step(t, a)
	d.full = errNever
	if err := a.Close(t.Context()); !errors.Is(err, errNever) || w.value(t, c.Number()).Free {
		t.Errorf("%v, %v", err, w.value(t, c.Number()))
	}
	d.full, w.down = nil, errNever
	if err := a.Close(t.Context()); !errors.Is(err, errNever) || d.kept == nil {
		t.Errorf("%v, %v", err, d.kept)
	}
	w.down = nil
	if c := step(t, w.owner(t, "a", d.use)); !c.Resumed() {
		t.Error("the node has forgotten its number, which no other node can have")
	}
}

// Whatever Latest returns, the mark stays within the claim.
func TestGivenBackWithin(t *testing.T) {
	for _, late := range []uint64{0, 1 << 60} {
		w, d := newWorld(), &disk{latest: late}
		k := keys{"p"}
		for n := range uint64(2) {
			w.data[k.number(n+1)] = Value{Mark: w.now - 5000, Generation: 1, Token: 99, Name: "x"}.String()
		}
		a := w.owner(t, "a", d.use)
		c := step(t, a)
		w.now += 1000
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := w.value(t, c.Number()); v.Mark < c.After() || v.Mark > c.Milli() {
			t.Errorf("latest %d: the store has %v, ids from %d to %d", late, v, c.After(), c.Milli())
		}
	}
}

// Without a memory, generators may still be open when the number is returned. If the node learns
// only then that an extension was written, the generators may make ids up to that extension's mark.
// So the mark that Close leaves is not lower.
func TestGivenBackUnheard(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	w.now += 1000
	w.fail = func(string) error { w.down = errNever; return errHappened }
	if err := a.Step(t.Context()); !errors.Is(err, errNever) {
		t.Fatal(err)
	}
	w.fail, w.down = nil, nil
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark < c.Milli() || c.Milli() != w.now+testHold {
		t.Errorf("the store has %v, ids end at %d", v, c.Milli())
	}
}

// Of a process and its copy, or of a disk and its copy, only one keeps the number.
func TestCopies(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	ca := step(t, a)
	b := w.owner(t, "a") // a copy of a
	cb := &Claim{owner: b, key: ca.key, entry: ca.entry, floor: ca.floor, after: ca.after, highest: ca.highest}
	cb.lost, cb.lose = context.WithCancelCause(t.Context())
	cb.mark.Store(ca.Milli())
	b.claim = cb
	w.now += 1000
	step(t, a)
	w.now += 1000
	if err := b.Step(t.Context()); err == nil && !cb.IsLost() {
		t.Error("the copy has the number too")
	}
	if cb.Clean() {
		t.Error("the copy continues up to its mark")
	}
	w.now += 1000
	if step(t, a) != ca {
		t.Error("both have lost the number")
	}

	d := &disk{}
	original := w.owner(t, "c", d.use, func(c *Config) { c.Last = 9 })
	co := step(t, original)
	kept := *d.kept
	w.now += 1000
	step(t, original)
	if c := step(t, w.owner(t, "c", (&disk{kept: &kept}).use, func(c *Config) { c.Last = 9 })); c.Resumed() {
		t.Error("a node with a copy of the disk from before the last mark resumes the claim")
	}
	w.now += 1000
	if step(t, original) != co {
		t.Error("the original has lost its number to the copy")
	}
	young := *d.kept
	if c := step(t, w.owner(t, "c", (&disk{kept: &young}).use, func(c *Config) { c.Last = 9 })); !c.Resumed() {
		t.Error("a restart does not resume the claim")
	}
	original.Step(t.Context())
	if !co.IsLost() || co.Clean() {
		t.Error("the original continues together with a copy of its disk")
	}
}

// The node recognizes values that it wrote without an answer, however many there are.
func TestManyLostAnswers(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	var last string
	w.fail = func(value string) error { last, w.down = value, errNever; return nil }
	for range 3 * maxSent {
		w.now += 1000
		w.down = nil
		if err := a.Step(t.Context()); err == nil {
			t.Fatal("Step succeeded without an answer")
		}
	}
	w.down, w.fail = nil, nil
	w.data[c.key] = last // a late write
	if len(c.sent) > maxSent || step(t, a) != c {
		t.Errorf("%d values are remembered", len(c.sent))
	}
}

func TestClean(t *testing.T) {
	for name, test := range map[string]struct {
		lose  func(*world, *Claim)
		clean bool
	}{
		"released": {func(w *world, c *Claim) { Release(t.Context(), w, "p", c.Number(), w.now) }, true},
		"released by an earlier version": {func(w *world, c *Claim) {
			v := c.entry.Value
			w.data[c.key] = Value{Mark: v.Mark, Generation: v.Generation + 1, Token: 99, Free: true, Name: v.Name}.String()
		}, false},
		"claimed from an earlier, restored mark": {func(w *world, c *Claim) {
			v := c.entry.Value
			w.data[c.key] = Value{Mark: v.Mark + 1, Generation: v.Generation + 1, Token: 99, Name: "b", After: v.Mark - 1,
				Hold: 1}.String()
		}, false},
		"another claim of the same generation": {func(w *world, c *Claim) {
			w.data[c.key] = Value{Mark: c.Milli() + 1, Generation: 1, Token: 99, Name: "b", After: c.Milli(), Hold: 1}.String()
		}, false},
		"an earlier generation": {func(w *world, c *Claim) {
			w.data[c.key] = Value{Mark: c.Milli() + 1, Generation: 0, Token: 99, Name: "b", After: c.Milli(), Hold: 1}.String()
		}, false},
	} {
		w := newWorld()
		a := w.owner(t, "a")
		c := step(t, a)
		w.now += 1000
		test.lose(w, c)
		other := step(t, a)
		if !c.IsLost() || c.Clean() != test.clean || other == c {
			t.Errorf("%s: lost %v, clean %v", name, c.IsLost(), c.Clean())
		}
		if _, err := a.State(); err != nil {
			t.Errorf("%s: after a good step, the state is %v", name, err)
		}
	}
}

// If the store has forgotten a mark that has passed, the claim must not continue: another node may
// have had the number since.
func TestForgottenMark(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	old := maps.Clone(w.data)
	w.now += 1000
	step(t, a)
	w.data, w.now = old, c.Milli()+1
	if step(t, a) == c || c.Clean() {
		t.Error("the claim continues")
	}
}

// restored describes a restore, with the clock of the world.
func (w *world) restored(margin time.Duration) Restored {
	return Restored{Clock: func() uint64 { return w.now }, Hold: testHold * time.Millisecond, Margin: margin, Nonce: w.now}
}

func TestAfterRestore(t *testing.T) {
	w := newWorld()
	a, b := w.owner(t, "a"), w.owner(t, "b")
	ca, cb := step(t, a), step(t, b)
	w.now += testHold / 2
	step(t, a)
	r := w.restored(testHold / 4 * time.Millisecond * 3)
	f, err := AfterRestore(t.Context(), w, "p", r)
	if err != nil || f.Since != w.now+testHold/4*3 || f.Mark != f.Since+testHold {
		t.Fatalf("%v, %v", f, err)
	}
	if step(t, a) != ca {
		t.Error("the node whose clock was ahead has lost its number")
	}
	if err := b.Step(t.Context()); !errors.Is(err, errPast) {
		t.Error(err)
	}
	if !cb.IsLost() || cb.Clean() {
		t.Error("the node whose clock was not ahead continues")
	}
	w.now++
	r.Nonce++
	if again, err := AfterRestore(t.Context(), w, "p", r); err != nil || again != f {
		t.Errorf("the second call returned %v, %v", again, err)
	}
	if step(t, a) != ca {
		t.Error("the node has lost its number after the second call")
	}
	w.now = cb.Milli() + 1
	if c := step(t, b); c.After() != f.Mark {
		t.Errorf("a new claim begins after %d, want %d", c.After(), f.Mark)
	}
}

// Until limits the floor, and the longest hold in the store counts. A former floor whose mark has
// passed has no effect.
func TestAfterRestoreUntil(t *testing.T) {
	w := newWorld()
	step(t, w.owner(t, "a", func(c *Config) { c.Hold = 2 * testHold * time.Millisecond }))
	w.data[keys{"p"}.floor()] = Floor{1, w.now - 1, 7, founded.Places}.String()
	r := w.restored(time.Second)
	r.Until = w.now
	w.now += 9000
	f, err := AfterRestore(t.Context(), w, "p", r)
	if err != nil || f.Since != r.Until+1000 || f.Mark != f.Since+2*testHold {
		t.Errorf("%v, %v", f, err)
	}
}

// What the store proves wrong is refused, unless the operator is sure.
func TestAfterRestoreContradicted(t *testing.T) {
	const hold = testHold * time.Millisecond
	for name, test := range map[string]struct {
		change  func(w *world, r *Restored)
		refused bool
	}{
		"in order":         {func(*world, *Restored) {}, false},
		"until the end":    {func(w *world, r *Restored) { r.Until = w.now - 2000 }, false},
		"until too early":  {func(w *world, r *Restored) { r.Until = w.now - 3601_000 }, true},
		"until within":     {func(w *world, r *Restored) { r.Until = w.now - 3000 }, false},
		"until 1 ms early": {func(w *world, r *Restored) { r.Until = w.now - 3001 }, true},
		"until too early for a free number": {func(w *world, r *Restored) {
			w.data = map[string]string{keys{"p"}.floor(): founded.String(), keys{"p"}.number(1): Value{
				Mark: w.now - 2000, After: w.now - 9000, Hold: testHold, Free: true}.String()}
			r.Until = w.now - 3001
		}, true},
		"until, with a number that an operator released": {func(w *world, r *Restored) {
			if _, err := Release(t.Context(), w, "p", 1, w.now); err != nil {
				t.Error(err)
			}
			r.Until = w.now - 3601_000
		}, false},
		"until too early for a claim above the mark": {func(w *world, r *Restored) {
			v := w.value(t, 1)
			v.After = v.Mark + 1
			w.data[keys{"p"}.number(1)] = v.String()
			r.Until = w.now - 3601_000
		}, true},
		"a high floor, not again":          {func(w *world, r *Restored) { w.floor(w.now + 1001 + testHold) }, false},
		"no numbers":                       {func(w *world, _ *Restored) { clear(w.data) }, true},
		"no numbers, but a move":           {func(w *world, r *Restored) { clear(w.data); r.From = "a:q" }, false},
		"a move from the last place":       {func(w *world, r *Restored) { r.From, r.Last = "a:q", "a:q" }, false},
		"a move from a place in the floor": {func(w *world, r *Restored) { r.From, r.Last = ":p", "a:q" }, false},
		"a move from another place":        {func(w *world, r *Restored) { r.From, r.Last = "b:q", "a:q" }, true},
		"a move from an unknown place":     {func(w *world, r *Restored) { r.From = "a:q" }, true},
		"no numbers, a move from another place": {func(w *world, r *Restored) {
			clear(w.data)
			r.From, r.Last = "b:q", "a:q"
		}, true},
		"the largest margin":      {func(_ *world, r *Restored) { r.Margin = 3 * hold }, false},
		"a margin that is larger": {func(_ *world, r *Restored) { r.Margin = 3*hold + 1 }, true},
		"a key deleted before": {func(w *world, _ *Restored) {
			w.data[keys{"p"}.number(2)] = Value{Mark: w.now + 2*testHold, After: w.now + 2*testHold, Free: true}.String()
		}, false},
		"again after a floor":      {func(w *world, r *Restored) { w.floor(w.now + 1000 + testHold); r.Again = true }, false},
		"again after a high floor": {func(w *world, r *Restored) { w.floor(w.now + 1001 + testHold); r.Again = true }, true},
	} {
		w := newWorld()
		step(t, w.owner(t, "a", func(c *Config) { c.Last = 1 }))
		w.now += 2000
		r := w.restored(time.Second)
		test.change(w, &r)
		before := maps.Clone(w.data)
		if f, err := AfterRestore(t.Context(), w, "p", r); (err != nil) != test.refused ||
			err != nil && !maps.Equal(w.data, before) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
		r.Sure = true
		if f, err := AfterRestore(t.Context(), w, "p", r); err != nil {
			t.Errorf("%s, sure: %v, %v", name, f, err)
		}
	}
	w := newWorld()
	r := w.restored(-time.Millisecond)
	r.Sure = true
	if f, err := AfterRestore(t.Context(), w, "p", r); err == nil {
		t.Errorf("a negative margin: %v", f)
	}
}

// floor writes a floor with a mark.
func (w *world) floor(mark uint64) {
	w.data[keys{"p"}.floor()] = Floor{mark - testHold, mark, 7, founded.Places}.String()
}

// A number whose key was deleted is free only once the mark of its owner must have passed. The owner
// loses it.
func TestDeleted(t *testing.T) {
	w := newWorld()
	one := func(c *Config) { c.First, c.Last = 1, 1 }
	a := w.owner(t, "a", one)
	ca := step(t, a)
	w.now += 1000
	delete(w.data, ca.key)
	b := w.owner(t, "b", one)
	for range 2 {
		if err := b.Step(t.Context()); !errors.Is(err, ErrNoneFree) {
			t.Fatal(err)
		}
	}
	v := w.value(t, 1)
	if v.Mark != w.now+testHold+2*uint64(b.allowed()/time.Millisecond) || !v.Free {
		t.Errorf("the store has %+v", v)
	}
	if err := a.Step(t.Context()); !errors.Is(err, ErrNoneFree) || !ca.IsLost() {
		t.Errorf("%v; lost: %t", err, ca.IsLost())
	}
	w.now = v.Mark + 1
	if c := step(t, b); c.After() != v.Mark {
		t.Errorf("ids after %d, want %d", c.After(), v.Mark)
	}

	// If the owner is first, it keeps the number.
	delete(w.data, ca.key)
	cb, _ := b.Claim()
	if step(t, b) != cb {
		t.Error("the owner has lost its number")
	}

	// All numbers of a node are written, a few at a time, and other numbers are claimed.
	w = newWorld()
	for n := range uint64(20) {
		w.data[keys{"p"}.used(n+1)] = usedText(3 * testHold)
	}
	w.data[keys{"p"}.used(0)] = usedText(testHold) // of nodes with more numbers
	w.data[keys{"p"}.used(30)] = usedText(testHold)
	c := w.owner(t, "c", func(c *Config) { c.Last = 21 })
	w.fail = func(string) error { return errNever }
	if err := c.Step(t.Context()); !errors.Is(err, errNever) || strings.Contains(err.Error(), "attempts") {
		t.Errorf("the value cannot be written: %v", err)
	}
	w.fail = nil
	if claim := step(t, c); claim.Number() != 21 {
		t.Errorf("claimed number %d, whose key was deleted", claim.Number())
	}
	if all, err := List(t.Context(), w, "p"); len(all) != 1+tries || err != nil {
		t.Errorf("%d numbers, %v", len(all), err)
	}
	d := w.owner(t, "d", func(c *Config) { c.Last = 21 })
	for range 10 {
		if err := d.Step(t.Context()); !errors.Is(err, ErrNoneFree) {
			t.Fatal(err)
		}
	}
	if all, err := List(t.Context(), w, "p"); len(all) != 21 || err != nil {
		t.Errorf("%d numbers, %v", len(all), err)
	}
	if v := w.value(t, 20); v.Mark != w.now+3*testHold+2*uint64(d.allowed()/time.Millisecond) {
		t.Errorf("with a longer hold of the last claim: %+v", v)
	}
}

// The first claim of a store writes the floor too, and claims the number once, whatever happens to the
// first answer.
func TestFirstClaim(t *testing.T) {
	for _, first := range []error{nil, errNever, errHappened} {
		w := newWorld()
		clear(w.data)
		w.fail = func(string) error { w.fail = nil; return first }
		o := w.owner(t, "a")
		c := step(t, o)
		f, err := ReadFloor(t.Context(), w, "p")
		if v := w.value(t, c.Number()); v.Generation != 1 || f != founded || err != nil || len(w.data) != 3 {
			t.Errorf("%v: %+v, floor %+v, %v", first, v, f, err)
		}
	}
}

// A claim that was not written is not taken for another node's.
func TestPendingIsAnothers(t *testing.T) {
	w := newWorld()
	one := func(c *Config) { c.First, c.Last = 1, 1 }
	a := w.owner(t, "a", one)
	w.fail = func(string) error { w.down = errNever; return errNever }
	if err := a.Step(t.Context()); err == nil || a.pending == nil {
		t.Fatal(err)
	}
	w.fail, w.down = nil, nil
	c := step(t, w.owner(t, "b", one))
	if err := a.Step(t.Context()); !errors.Is(err, ErrNoneFree) || w.value(t, 1) != c.entry.Value {
		t.Errorf("%v; the store has %+v", err, w.value(t, 1))
	}
}

// A number is not returned while the floor is missing.
func TestNotReturnedWithoutFloor(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	delete(w.data, keys{"p"}.floor())
	if err := a.Close(t.Context()); !errors.Is(err, errNoFloor) || w.value(t, c.Number()).Free {
		t.Errorf("%v; the store has %+v", err, w.value(t, c.Number()))
	}
}

// AfterRestore keeps the former places, and replaces the floor of an earlier restore in another cluster.
func TestAfterRestorePlaces(t *testing.T) {
	w, id := newWorld(), "b"
	was := Floor{1, w.now + 5000, 7, "a:p"}
	w.data[keys{"p"}.floor()] = was.String()
	s := clustered{w, &id}
	f, err := AfterRestore(t.Context(), s, "p", w.restored(0))
	if err != nil || f.Since != was.Mark+1 || f.Places != "a:p b:p" {
		t.Errorf("%+v, %v", f, err)
	}
	w.now++
	if again, err := AfterRestore(t.Context(), s, "p", w.restored(0)); err != nil || again != f {
		t.Errorf("the second call returned %+v, %v", again, err)
	}
	if f, err := AfterRestore(t.Context(), astray{w}, "p", w.restored(0)); !errors.Is(err, errNever) {
		t.Errorf("without a cluster: %+v, %v", f, err)
	}
	for i := range 2 * maxPlaces {
		f.add(fmt.Sprint(i), fmt.Sprint(i))
	}
	if all := strings.Fields(f.Places); len(all) != maxPlaces || all[maxPlaces-1] != fmt.Sprint(2*maxPlaces-1) {
		t.Errorf("%d places: %v", len(all), all)
	}
}

// dated is a store whose machines have clocks.
type dated struct {
	*world
	offsets []time.Duration
}

func (s dated) Clocks(context.Context, func() uint64) []time.Duration { return slices.Clone(s.offsets) }

func TestAfterRestoreClock(t *testing.T) {
	w := newWorld()
	step(t, w.owner(t, "a"))
	w.now -= 1001
	if _, err := AfterRestore(t.Context(), w, "p", w.restored(time.Second)); err == nil {
		t.Error("a clock behind the marks is accepted")
	}
	w.now++ // now the marks fit the clock
	for offset, refused := range map[time.Duration]bool{
		time.Second + 1: true, time.Second: false, 0: false, -time.Second: false, -time.Second - 1: true,
	} {
		store := dated{w, []time.Duration{0, offset, 0}}
		if _, err := AfterRestore(t.Context(), store, "p", w.restored(time.Second)); (err != nil) != refused {
			t.Errorf("ahead by %v: %v", offset, err)
		}
	}
	r := w.restored(time.Second)
	r.Sure = true
	if _, err := AfterRestore(t.Context(), dated{w, []time.Duration{time.Hour}}, "p", r); err != nil {
		t.Error(err)
	}
}

// A floor written by mistake is withdrawn, and no node waits for it any longer.
func TestWithdraw(t *testing.T) {
	w := newWorld()
	three := func(c *Config) { c.Last = 3 }
	a := w.owner(t, "a", three)
	ca := step(t, a)
	far := w.restored(24 * time.Hour)
	far.Sure = true
	if _, err := AfterRestore(t.Context(), w, "p", far); err != nil {
		t.Fatal(err)
	}
	waits := step(t, a)
	if waits == ca || waits.After() < w.now+24*3600_000 {
		t.Fatalf("ids begin at %d", waits.After())
	}
	w.now += 1000
	r := w.restored(time.Second)
	r.Sure = true // the marks are one hold ahead
	f, err := Withdraw(t.Context(), w, "p", r)
	if err != nil || f.Mark != w.now+1000+testHold {
		t.Fatalf("%v, %v", f, err)
	}
	if c := step(t, a); c == waits || c.After() != f.Mark || !waits.Clean() {
		t.Errorf("ids begin at %d", c.After())
	}
	w.now++
	if again, err := Withdraw(t.Context(), w, "p", w.restored(time.Second)); err != nil || again != f {
		t.Errorf("nothing to withdraw: %v, %v", again, err)
	}
	w = newWorld()
	if f, err := Withdraw(t.Context(), w, "p", w.restored(0)); err == nil {
		t.Errorf("there was no floor, but now %v", f)
	}
}

// A floor that was deleted is written again, above the former one, before any claim. The numbers stay.
func TestFloorDeleted(t *testing.T) {
	for name, first := range map[string]func(t *testing.T, a, b *Owner){
		"noticed by an owner": func(t *testing.T, a, b *Owner) {
			if err := a.Step(t.Context()); !errors.Is(err, errNoFloor) {
				t.Error(err)
			}
			step(t, a)
			step(t, b)
		},
		"noticed by a claim": func(t *testing.T, a, b *Owner) {
			step(t, b)
			step(t, a)
		},
	} {
		w := newWorld()
		w.data = map[string]string{keys{"p"}.used(1): usedText(testHold)}
		w.fail = func(string) error { return errNever }
		if err := w.owner(t, "a").Step(t.Context()); !errors.Is(err, errNever) || errors.Is(err, errContended) {
			t.Errorf("the floor cannot be written: %v", err)
		}
		w = newWorld()
		was := Floor{1, w.now + 1000, 7, founded.Places}
		w.data[keys{"p"}.floor()] = was.String()
		a, b := w.owner(t, "a"), w.owner(t, "b")
		ca := step(t, a)
		w.now++
		delete(w.data, keys{"p"}.floor())
		first(t, a, b)
		f, err := ReadFloor(t.Context(), w, "p")
		if err != nil || f.Mark <= was.Mark || f.Places != was.Places {
			t.Errorf("%s: the floor is %v, %v", name, f, err)
		}
		cb, _ := b.Claim()
		if now, _ := a.Claim(); now != ca || ca.IsLost() || cb.After() != f.Mark {
			t.Errorf("%s: lost: %t; new ids after %d, want %d", name, ca.IsLost(), cb.After(), f.Mark)
		}
	}
}

// signing is a store that notices when it was restored.
type signing struct {
	dated
	sign string
}

func (s *signing) Restored() (sign string, ok bool) {
	sign, s.sign = s.sign, ""
	return sign, sign != ""
}

// An owner that finds an older value in place of its own knows that the store was restored. It writes
// the floor at once, so that no other node can claim a number above whose mark the store forgot.
func TestOlderValue(t *testing.T) {
	w := newWorld()
	a, b := w.owner(t, "a"), w.owner(t, "b")
	ca := step(t, a)
	before := maps.Clone(w.data)
	cb := step(t, b)
	w.now += 1000
	step(t, a)
	w.data = before
	w.now += 1000
	if step(t, a) != ca || w.value(t, ca.Number()).Mark < w.now+testHold {
		t.Error("the node has lost its number, or its mark")
	}
	floor, err := parseFloor(w.data[keys{"p"}.floor()])
	if err != nil || floor.Mark <= cb.Milli() {
		t.Errorf("the floor is %v, not above %d, %v", floor, cb.Milli(), err)
	}
	if c := step(t, w.owner(t, "c")); c.Number() != cb.Number() || c.After() <= cb.Milli() {
		t.Errorf("number %d was claimed for ids after %d, not after %d", c.Number(), c.After(), cb.Milli())
	}
	if step(t, a) != ca || w.data[keys{"p"}.floor()] != floor.String() {
		t.Error("the floor was written twice")
	}
}

// Only the first node that notices a restore writes the floor. After a second restore, which loses
// that floor, the next floor is above it.
func TestRestoredSign(t *testing.T) {
	w := newWorld()
	five := func(c *Config) { c.Last = 5 }
	start := func(name string) (*Owner, *signing) {
		s := &signing{dated: dated{world: w}}
		return w.owner(t, name, five, func(c *Config) { c.Store = s }), s
	}
	a, as := start("a")
	b, bs := start("b")
	ca, cb := step(t, a), step(t, b)
	floor := func() Floor {
		f, err := parseFloor(w.data[keys{"p"}.floor()])
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	w.now += 1000
	as.sign, as.offsets = "lower", []time.Duration{time.Hour}
	if err := a.Step(t.Context()); err == nil || floor() != founded {
		t.Errorf("with a wrong clock: %v, %v", err, floor())
	}
	as.offsets = nil
	if step(t, a) != ca {
		t.Error("the first node has lost its number")
	}
	first := floor()
	if first.Since != w.now+10_000 || first.Mark != first.Since+testHold {
		t.Errorf("the floor is %v", first)
	}
	w.now += 1000
	bs.sign = "lower"
	if step(t, b) != cb || floor() != first {
		t.Errorf("the second node has written the floor again: %v", floor())
	}
	w.now += 1000
	delete(w.data, keys{"p"}.floor())
	as.sign = "lower"
	if step(t, a) == ca || floor().Since != first.Mark+1 {
		t.Errorf("after another restore: %v", floor())
	}
	w.now += 1000
	bs.sign = "lower"
	again := floor()
	if step(t, b) == cb || floor() != again {
		t.Errorf("the second node has changed the floor: %v", floor())
	}
}

// A node claims nothing if its clock differs from those of most of the store's machines.
func TestClockOff(t *testing.T) {
	bound := testHold / 3 * time.Millisecond
	for _, test := range []struct {
		offsets []time.Duration
		refused bool
	}{
		{nil, false},
		{[]time.Duration{bound}, false},
		{[]time.Duration{bound + 1}, true},
		{[]time.Duration{-bound}, false},
		{[]time.Duration{-bound - 1}, true},
		{[]time.Duration{time.Hour, 0}, false},
		{[]time.Duration{time.Hour, 2 * time.Hour, 0}, true},
		{[]time.Duration{-time.Hour, time.Hour, 0}, false},
		{[]time.Duration{-time.Hour, -2 * time.Hour}, true},
	} {
		w := newWorld()
		o := w.owner(t, "a", func(c *Config) { c.Store = dated{w, test.offsets} })
		if err := o.Step(t.Context()); (err != nil) != test.refused || len(w.data) > 1 == test.refused {
			t.Errorf("%v: %v, %v", test.offsets, err, w.data)
		}
	}
}

// clustered is a store that knows its cluster.
type clustered struct {
	*world
	id *string
}

func (s clustered) Cluster(context.Context) (string, error) { return *s.id, nil }

// If nodes of a fleet use two stores or two prefixes, ids repeat. A node that had a number in one
// claims none in the other, until the fleet is moved there.
func TestElsewhere(t *testing.T) {
	for name, move := range map[string]func(*Config, *string){
		"cluster":              func(_ *Config, id *string) { *id = "b" },
		"prefix":               func(c *Config, _ *string) { c.Prefix = "q" },
		"cluster after a stop": func(_ *Config, id *string) { *id = "b" },
	} {
		stops := strings.Contains(name, "stop")
		w, d, id := newWorld(), &disk{}, "a"
		w.data = map[string]string{}
		in := func(c *Config) { c.Store = clustered{w, &id} }
		a := w.owner(t, "a", d.use, in)
		c := step(t, a)
		if stops {
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.data = map[string]string{} // of the other cluster, or under the other prefix
		moved := w.owner(t, "a", d.use, in, func(c *Config) { move(c, &id) })
		w.now = c.Milli() + 10*testHold
		err := moved.Step(t.Context())
		if !errors.As(err, new(ElsewhereError)) || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"a:p"`) {
			t.Errorf("another %s: %v", name, err)
		}
		r := w.restored(time.Second)
		r.From = "a:p"
		f, err := AfterRestore(t.Context(), moved.Store, moved.Prefix, r)
		if err != nil {
			t.Fatal(err)
		}
		if want := "a:p " + Place(id, moved.Prefix); f.Places != want {
			t.Errorf("another %s: the floor names %q, want %q", name, f.Places, want)
		}
		if c := step(t, moved); c.Resumed() || c.After() != f.Mark {
			t.Errorf("another %s: resumed: %t; ids after %d, want %d", name, c.Resumed(), c.After(), f.Mark)
		}
	}
}

// An owner that notices that its store is now another cluster names both in the floor.
func TestMovesWhileRunning(t *testing.T) {
	w, id := newWorld(), "a"
	clear(w.data)
	s := &signing{dated: dated{world: w}}
	a := w.owner(t, "a", func(c *Config) {
		c.Store = struct {
			Store
			Clustered
			Restorable
		}{w, clustered{w, &id}, s}
	})
	c := step(t, a)
	w.now += 1000
	clear(w.data)
	id, s.sign = "b", "another cluster"
	if step(t, a) != c {
		t.Error("the claim is lost")
	}
	if f, err := ReadFloor(t.Context(), w, "p"); f.Places != "a:p b:p" || f.Since != w.now+10_000 || err != nil {
		t.Errorf("the floor is %+v, %v", f, err)
	}
	s.sign = "another"
	a.Store = struct {
		Store
		Clustered
		Restorable
	}{w, astray{w}, s}
	floor := w.data[keys{"p"}.floor()]
	if err := a.Step(t.Context()); !errors.Is(err, errNever) || w.data[keys{"p"}.floor()] != floor {
		t.Errorf("without a cluster: %v; the floor is %s, and was %s", err, w.data[keys{"p"}.floor()], floor)
	}
}

// A node with its disk that starts after the numbers were deleted, before a running node has noticed,
// claims one after a running node has: that node adds the former place to the floor.
func TestStartedBeforeNoticed(t *testing.T) {
	w, d, id := newWorld(), &disk{}, "a"
	clear(w.data)
	start := func(name, sign string, change ...func(*Config)) (*Owner, *signing) {
		s := &signing{dated{world: w}, sign}
		return w.owner(t, name, append(change, func(c *Config) {
			c.Store = struct {
				Store
				Clustered
				Restorable
			}{w, clustered{w, &id}, s}
		})...), s
	}
	a, as := start("a", "")
	ca := step(t, a)
	b, _ := start("b", "", d.use)
	step(t, b)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.now += 1000
	clear(w.data)
	id = "b"
	b, _ = start("b", "deleted", d.use)
	if err := b.Step(t.Context()); !errors.As(err, new(ElsewhereError)) {
		t.Fatal(err)
	}
	first, err := ReadFloor(t.Context(), w, "p")
	if first.Since != w.now+10_000 || first.Places != "b:p" || err != nil {
		t.Fatalf("the floor is %+v, %v", first, err)
	}
	w.now += 1000
	as.sign = "deleted"
	if step(t, a) != ca {
		t.Error("the running node has lost its number")
	}
	want := first
	want.Places = "a:p b:p"
	if f, err := ReadFloor(t.Context(), w, "p"); f != want || err != nil {
		t.Errorf("the floor is %+v, %v; want %+v", f, err, want)
	}
	b, _ = start("b", "", d.use)
	if c := step(t, b); c.Number() == ca.Number() || c.After() != first.Mark {
		t.Errorf("number %d for ids after %d; want %d", c.Number(), c.After(), first.Mark)
	}
}

// The numbers of a store that was restored into another cluster are known by the floor. The first
// node that claims one writes a new floor; nodes of the former cluster may claim too.
func TestRestoredElsewhere(t *testing.T) {
	w, d, id := newWorld(), &disk{}, "a"
	in := func(c *Config) { c.Store = clustered{w, &id} }
	w.data = map[string]string{}
	a := w.owner(t, "a", d.use, in)
	step(t, a)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	id = "b"
	w.now += testHold
	for range 2 {
		c := step(t, w.owner(t, "a", d.use, in))
		if since := w.now + uint64(DefaultMargin(DefaultHold)/time.Millisecond); c.After() != since+testHold ||
			c.floor.Places != "a:p b:p" {
			t.Errorf("ids after %d; floor %v", c.After(), c.floor)
		}
	}
	was := Floor{w.now + 5000, w.now + 5000 + testHold, 7, "a:p b:p"} // of a recent restore
	w.data[keys{"p"}.floor()] = was.String()
	id = "c"
	if c := step(t, w.owner(t, "b", in)); c.floor.Since != was.Mark+1 || c.floor.Places != "a:p b:p c:p" {
		t.Errorf("floor %v after %v", c.floor, was)
	}
}

// A node that claims the first number of a prefix warns, once, if there are numbers under longer or
// shorter prefixes.
func TestNearby(t *testing.T) {
	for prefix, warned := range map[string]int{"p": 0, "p/eu/x": 1, "p/eu": 1, "q": 1, "r": 0, "pp": 0, "p/config": 1} {
		w := newWorld()
		for _, key := range []string{keys{"p"}.number(7), keys{"q/eu"}.number(7), "r/n", "/a/b"} {
			w.data[key] = Value{Mark: 1, Generation: 1, Token: 1, Name: "x"}.String()
		}
		var log strings.Builder
		in := func(c *Config) { c.Prefix, c.Log = prefix, slog.New(slog.NewTextHandler(&log, nil)) }
		step(t, w.owner(t, "a", in))
		step(t, w.owner(t, "b", in))
		if got := strings.Count(log.String(), "level=WARN"); got != warned {
			t.Errorf("%q: %s", prefix, log.String())
		}
	}
}

// Numbers that have long been idle are claimed before unused ones, and nodes choose different ones.
// Numbers that became free recently are claimed last.
func TestTableStays(t *testing.T) {
	w := newWorld()
	many := func(c *Config) { c.Last = 1000 }
	for n := range uint64(100) {
		w.data[keys{"p"}.number(n+1)] = Value{Mark: w.now - idle*testHold - 1, Generation: 1, Token: 99,
			Name: "gone"}.String()
	}
	w.data[keys{"p"}.number(500)] = Value{Mark: w.now - idle*testHold, Generation: 1, Token: 99, Name: "left"}.String()
	for i := range 100 {
		step(t, w.owner(t, fmt.Sprint("pod", i), many))
	}
	if all, err := List(t.Context(), w, "p"); len(all) != 101 || err != nil {
		t.Errorf("%d numbers, want 101; %v", len(all), err)
	}
	if c := step(t, w.owner(t, "next", many)); c.Number() <= 100 || c.Number() == 500 {
		t.Errorf("%d was claimed, which its former owner may want back", c.Number())
	}
}

func TestRelease(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	if _, err := Release(t.Context(), w, "p", c.Number(), w.now); err != nil {
		t.Fatal(err)
	}
	if v := w.value(t, c.Number()); !v.Free || v.Mark != c.Milli() || v.Token == c.entry.Token || v.Generation != 2 {
		t.Errorf("the store has %v", v)
	}
	if other := step(t, a); other.Number() == c.Number() {
		t.Error("the owner has the number again before its mark has passed")
	}
	if _, err := Release(t.Context(), w, "p", 77, w.now); err == nil || strings.Contains(err.Error(), "deleted") {
		t.Errorf("a number that was never claimed: %v", err)
	}
	delete(w.data, c.key)
	if _, err := Release(t.Context(), w, "p", c.Number(), w.now); err == nil || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("a number whose key was deleted: %v", err)
	}
}

// years is how far a wrong clock is ahead, in ms.
const years = 10 * 365 * 24 * 3600_000

// If a number claimed by a clock ten years ahead is released, other nodes can claim it
// immediately, for times before the spent period, and later for times after it.
func TestSpent(t *testing.T) {
	w, d := newWorld(), &disk{}
	one := func(c *Config) { c.First, c.Last = 1, 1 }
	far := func(c *Config) { now := c.Clock; c.Clock = func() uint64 { return now() + years } }
	former := step(t, w.owner(t, "former", one))
	w.now = former.Milli() + 1
	start := w.now
	ahead := w.owner(t, "ahead", one, far)
	spent := step(t, ahead)
	b := w.owner(t, "b", d.use, one)
	if err := b.Step(t.Context()); !errors.Is(err, ErrNoneFree) {
		t.Fatal(err)
	}
	w.now += 1000
	step(t, ahead)
	v, err := Release(t.Context(), w, "p", 1, w.now)
	if want := (Span{spent.After(), spent.Milli()}); err != nil || v.Spent != want || v.Mark != former.Milli() ||
		v != w.value(t, 1) {
		t.Fatalf("%+v, %v", v, err)
	}
	if again, err := Release(t.Context(), w, "p", 1, w.now); err != nil || again != v {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	if err := ahead.Step(t.Context()); !errors.Is(err, ErrNoneFree) || !spent.Clean() {
		t.Errorf("a step with the clock still ahead: %v", err)
	}
	c := step(t, b)
	if c.After() < former.Milli() || c.Milli() != w.now+testHold || c.Milli() > spent.After() {
		t.Errorf("ids from %d to %d", c.After(), c.Milli())
	}
	w.now += 1000
	step(t, b)
	w.now += 1000
	b = w.owner(t, "b", d.use, one)
	if c = step(t, b); !c.Resumed() || c.entry.Spent != v.Spent || c.After() < former.Milli() {
		t.Errorf("after a restart: %+v", c.entry)
	}
	if _, err := Release(t.Context(), w, "p", 1, w.now); err != nil || w.value(t, 1).Spent != v.Spent {
		t.Errorf("released by the right clock: %+v, %v", w.value(t, 1), err)
	}
	b.Step(t.Context())
	w.now = c.Milli() + 1
	// Another wrong clock, less far ahead: its time and the time in between are spent too.
	nearer := w.owner(t, "nearer", one,
		func(c *Config) { now := c.Clock; c.Clock = func() uint64 { return now() + years/2 } })
	cn := step(t, nearer)
	if v, err = Release(t.Context(), w, "p", 1, w.now); err != nil || v.Spent != (Span{cn.After(), spent.Milli()}) ||
		v.Mark != c.Milli() {
		t.Errorf("spent %+v, mark %d, %v", v.Spent, v.Mark, err)
	}
	// Up to the spent time, then above it.
	w.now = cn.After() - testHold
	c = step(t, b)
	if c.Milli() != cn.After() {
		t.Errorf("ids from %d to %d", c.After(), c.Milli())
	}
	w.now++
	if err := b.Step(t.Context()); !errors.Is(err, errSpent) || !c.Clean() || w.value(t, 1).Mark != cn.After() {
		t.Errorf("%v; the store has %+v", err, w.value(t, 1))
	}
	w.now = spent.Milli() + 1
	if c := step(t, b); c.After() != spent.Milli() || w.value(t, 1).Spent != (Span{}) {
		t.Errorf("ids after %d, %+v", c.After(), w.value(t, 1))
	}
	if w.now-start < years {
		t.Error("the test ends before the spent time")
	}
}

// Base is kept when a claim is resumed, and when a claim is found in the store after the answer to
// its write was lost. A claim that is found only at the spent time does not count.
func TestSpentLater(t *testing.T) {
	w, d := newWorld(), &disk{}
	one := func(c *Config) { c.First, c.Last = 1, 1 }
	unheard := func(o *Owner) {
		t.Helper()
		w.fail = func(string) error { w.down = errNever; return errHappened }
		if err := o.Step(t.Context()); err == nil {
			t.Fatal("claimed without an answer")
		}
		w.fail, w.down = nil, nil
	}
	far := func(c *Config) { now := c.Clock; c.Clock = func() uint64 { return now() + years } }
	ahead := w.owner(t, "ahead", d.use, one, far)
	unheard(ahead)
	first := step(t, ahead)
	resumed := step(t, w.owner(t, "ahead", d.use, one, far))
	v, err := Release(t.Context(), w, "p", 1, w.now)
	if err != nil || !resumed.Resumed() || v.Mark != 1 || v.Spent != (Span{first.After(), resumed.Milli()}) {
		t.Errorf("%+v, %v", v, err)
	}
	w.now = v.Spent.After - testHold
	b := w.owner(t, "b", one)
	unheard(b)
	w.now++
	if err := b.Step(t.Context()); !errors.Is(err, ErrNoneFree) {
		c, _ := b.Claim()
		t.Errorf("%+v, %v", c, err)
	}
}

// If the value does not show that the claim began far ahead, no time counts as spent, and the number
// stays taken.
func TestSpentUnknown(t *testing.T) {
	for name, change := range map[string]func(v *Value){
		"released":                     func(v *Value) { v.Free, v.After = true, v.Mark },
		"ahead by less than two holds": func(v *Value) { v.After = v.After - years + 2*testHold - 1 },
	} {
		w := newWorld()
		c := step(t, w.owner(t, "ahead", func(c *Config) { c.Last, c.Clock = 1, func() uint64 { return w.now + years } }))
		v := c.entry.Value
		change(&v)
		w.data[c.key] = v.String()
		if v, err := Release(t.Context(), w, "p", 1, w.now); err != nil || v.Mark != c.Milli() || v.Spent != (Span{}) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := w.owner(t, "b", func(c *Config) { c.Last = 1 }).Step(t.Context()); !errors.Is(err, ErrNoneFree) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If the clock jumps ahead but the clocks of the store's machines do not, the mark does not move.
func TestClockJumps(t *testing.T) {
	w := newWorld()
	s := &dated{world: w}
	a := w.owner(t, "a", func(c *Config) { c.Store = s })
	c := step(t, a)
	s.offsets = []time.Duration{time.Hour}
	// A second later, and as far ahead as allowed.
	for _, now := range []uint64{w.now + 1000, w.now + 2000 + 2*testHold} {
		if w.now = min(now, c.Milli()+testHold); step(t, a) != c || c.Milli() != w.now+testHold {
			t.Errorf("the mark is at %d", c.Milli())
		}
	}
	w.now = c.Milli() + testHold + 1
	if err := a.Step(t.Context()); err == nil || c.IsLost() || w.value(t, c.Number()).Mark != c.Milli() {
		t.Errorf("%v, and the mark is at %d", err, w.value(t, c.Number()).Mark)
	}
	s.offsets = nil
	if step(t, a) != c || c.Milli() != w.now+testHold {
		t.Errorf("the mark is at %d", c.Milli())
	}
}

func TestForeign(t *testing.T) {
	k := keys{"p"}
	good := Value{Mark: 1, Generation: 2, Token: 3, Name: "a b"}.String()
	if v, err := parseValue(good); err != nil || v != (Value{Mark: 1, Generation: 2, Token: 3, Name: "a b"}) {
		t.Fatalf("%v, %v", v, err)
	}
	for key, text := range map[string]string{
		k.number(1): "hello", k.number(2): "2" + good[1:], k.number(3): strings.Replace(good, "held", "lost", 1),
		"p/n/1": good, "p/used/1": usedText(1), k.used(4): version, k.floor(): "1 2 3", k.numbers() + "00000000000G": good,
	} {
		w := newWorld()
		w.data[key] = text
		err := w.owner(t, "a").Step(t.Context())
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %s: %v", key, text, err)
		}
	}
}

// A program that can write to the store can choose names and keys, but cannot forge a log line
// with them.
func TestForgedLines(t *testing.T) {
	const evil = "a\nflake: forged \x1b[2J"
	k := keys{"p"}
	w := newWorld()
	w.data[k.number(1)] = Value{Mark: 1 << 41, Generation: 1, Token: 1, Name: evil}.String()
	all, err := List(t.Context(), w.owner(t, "b").Store, "p")
	if err != nil || len(all) != 1 || all[0].Name != `a\nflake: forged \x1b[2J` {
		t.Errorf("%+v, %v", all, err)
	}
	v, _ := parseValue(w.data[k.number(1)])
	none := table{entries: map[uint64]Entry{1: {Number: 1, Value: v}}}.noneFree(1, 1)
	for _, err := range []error{none, foreign(k.numbers()+evil, evil)} {
		if !strings.Contains(err.Error(), `a\nflake: forged \x1b[2J`) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q", err)
		}
	}
	if _, err := New(Config{Last: 1, Name: evil}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("the node's own name: %v", err)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{First: 2, Last: 1}, {Last: 1 << 48}, {Hold: time.Millisecond}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// An owner from Open moves the mark by itself. Callers at the mark wait until it has moved, and fail
// immediately while it cannot be moved.
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
		// Both the write and the read after it fail, for one reason.
		if _, err := o.State(); !errors.Is(err, errNever) || strings.Count(err.Error(), errNever.Error()) != 1 {
			t.Error(err)
		}
		w.set(func() { w.down = nil })
		time.Sleep(2 * retry)
		if at, err := o.State(); err != nil || time.Since(at) > 2*retry {
			t.Error(at, err)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Extend(t.Context(), c.Milli()+1_000_000); !errors.Is(err, tick.ErrClosed) {
			t.Error(err)
		}
	})
}

// brokenOff is a store. If the deadline of ctx is near, Get returns only when ctx is done.
type brokenOff struct{ *world }

func (s brokenOff) Get(ctx context.Context, keys ...string) ([]string, error) {
	if until, ok := ctx.Deadline(); ok && time.Until(until) < patience {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.world.Get(ctx, keys...)
}

func TestOpenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		config := w.owner(t, "a").Config
		logs := &warns{}
		logs.use(&config)
		config.Last = 1
		w.down = errNever
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute has passed"))
		defer cancel()
		if _, err := Open(ctx, config); !errors.Is(err, errNever) || !strings.Contains(err.Error(), "a minute has passed") {
			t.Error(err)
		}
		if got := logs.count(); got != 1 {
			t.Errorf("the wait is logged %d times", got)
		}
		broken, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		config.Store = brokenOff{w}
		if _, err := Open(broken, config); !errors.Is(err, errNever) {
			t.Errorf("ctx ended the last attempt, but the error does not say why the attempt before it failed: %v", err)
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
		o.Close(t.Context())
	})
}
