package workers

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The value in the store decides whether a claim is lost or its value is written again.
func TestJudged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(v *Value)
		lost   bool
	}{
		"a lower mark":                     {func(v *Value) { v.Mark-- }, false},
		"a former claim":                   {func(v *Value) { v.Generation--; v.Token++ }, false},
		"a former claim with a later mark": {func(v *Value) { v.Generation--; v.Token++; v.Mark++ }, true},
		"another token":                    {func(v *Value) { v.Token++; v.Mark-- }, true},
		"another generation":               {func(v *Value) { v.Generation++; v.Mark-- }, true},
		"free":                             {func(v *Value) { v.Free = true; v.Mark-- }, true},
		"another write":                    {func(v *Value) { v.Nonce++ }, true},
	} {
		w := newWorld()
		a := w.owner(t, "a", func(c *Config) { c.Last = 1 })
		c := step(t, a)
		v := c.entry.Value
		test.change(&v)
		w.data[c.key] = v.String()
		w.now += 1000
		if a.Step(t.Context()); c.IsLost() != test.lost || c.Clean() || (w.value(t, 1) == v) != test.lost {
			t.Errorf("%s: lost %v, clean %v; the store has %+v", name, c.IsLost(), c.Clean(), w.value(t, 1))
		}
	}
}

// A claim that the store has forgotten continues up to its mark. After an answer, values sent
// before it are dropped. A failed write is not mistaken for a mark that the store has forgotten.
func TestConfirmed(t *testing.T) {
	w, logs := newWorld(), &warns{}
	a := w.owner(t, "a", logs.use)
	c := step(t, a)
	w.now += 1000
	if step(t, a); c.highest != c.Milli() || len(c.sent) > 0 {
		t.Errorf("the highest is %d of %d, sent %v", c.highest, c.Milli(), c.sent)
	}
	w.fail = func(string) error { w.fail = nil; return errNever }
	if step(t, a); logs.count() > 0 {
		t.Error("a warning is logged")
	}
	w.now += 1000
	w.fail = func(string) error { return errHappened }
	if step(t, a) != c || c.Milli() != w.now+testHold {
		t.Error("a mark is not confirmed if its write is not answered")
	}
	w.fail, w.now = nil, c.Milli()
	delete(w.data, c.key)
	if step(t, a) != c {
		t.Error("the claim is lost at its mark")
	}
}

// liar is a store that writes nothing, but returns true and an error.
type liar struct{ *world }

func (liar) Swap(context.Context, map[string]string, map[string]string) (bool, error) {
	return true, errNever
}

// A result that is returned with an error does not count.
func TestAnswerWithError(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	a.Store = liar{w}
	if err := a.Step(t.Context()); !errors.Is(err, errNever) {
		t.Errorf("a claim: %v", err)
	}
	a.Store = w
	c := step(t, a)
	a.Store = liar{w}
	before := c.Milli()
	w.now += 1000
	if err := a.Step(t.Context()); !errors.Is(err, errNever) || c.Milli() != before {
		t.Errorf("a mark: %v", err)
	}
	if _, err := AfterRestore(t.Context(), a.Store, "p", w.restored(time.Second)); !errors.Is(err, errNever) {
		t.Errorf("a floor: %v", err)
	}
	if err := a.Close(t.Context()); !errors.Is(err, errNever) {
		t.Errorf("a close: %v", err)
	}
}

// An error of a read after a write is left out if all its lines are in that of the write.
func TestBoth(t *testing.T) {
	for _, test := range []struct{ write, read, want string }{
		{"", "a", "a"}, {"a", "a", "a"}, {"a\nb", "b\na", "a\nb"}, {"a", "b", "a\nb"}, {"a\nb", "b\nc", "a\nb\nb\nc"},
	} {
		var write error
		if test.write != "" {
			write = errors.New(test.write)
		}
		if got := both(write, errors.New(test.read)).Error(); got != test.want {
			t.Errorf("%q and %q: %q, want %q", test.write, test.read, got, test.want)
		}
	}
}

// A number that another node has claimed is not returned.
func TestNotGivenBackTwice(t *testing.T) {
	w := newWorld()
	a := w.owner(t, "a")
	c := step(t, a)
	w.data[c.key] = Value{Mark: c.Milli() + 1, Generation: 2, Token: 99, Name: "b"}.String()
	before := maps.Clone(w.data)
	if err := a.Close(t.Context()); err != nil || !maps.Equal(w.data, before) {
		t.Errorf("%v, and the store has %v", err, w.data)
	}
}

// A withdrawn floor ends only the claims that wait for it.
func TestWithdrawn(t *testing.T) {
	for name, test := range map[string]struct {
		late  uint64 // ms after the floor's mark
		other bool   // the claim does not begin at the floor
		lost  bool
	}{
		"waits":        {0, false, true},
		"has waited":   {1, false, false},
		"never waited": {0, true, false},
	} {
		w := newWorld()
		f := Floor{1, w.now + 1000, 7, founded.Places}
		w.data[keys{"p"}.floor()] = f.String()
		a := w.owner(t, "a")
		c := step(t, a)
		if test.other {
			c.after++
		}
		w.now = f.Mark + test.late
		w.data[keys{"p"}.floor()] = Floor{1, w.now, ^f.Nonce, founded.Places}.String()
		if step(t, a); c.IsLost() != test.lost {
			t.Errorf("%s: lost %v", name, c.IsLost())
		}
	}
}

// A claim can be resumed even when the clock is at its mark. A claim that was lost cannot be
// resumed, even if the disk still has it.
func TestNotResumed(t *testing.T) {
	w, d := newWorld(), &disk{}
	c := step(t, w.owner(t, "a", d.use))
	w.now = c.Milli()
	a := w.owner(t, "a", d.use)
	if c = step(t, a); !c.Resumed() {
		t.Error("a claim is not resumed at its mark")
	}
	v := c.entry.Value
	v.Nonce += 100
	w.data[c.key] = v.String()
	d.full = errNever
	if next := step(t, a); !c.IsLost() || next.Resumed() {
		t.Error("a lost claim is resumed")
	}
}

// A lost claim is not extended again, even if the store is restored to the claim's last value.
func TestLostStays(t *testing.T) {
	w := newWorld()
	one := func(c *Config) { c.Last = 1 }
	a := w.owner(t, "a", one)
	c := step(t, a)
	before := maps.Clone(w.data)
	if _, err := Release(t.Context(), w, "p", c.Number(), w.now); err != nil {
		t.Fatal(err)
	}
	a.Step(t.Context())
	w.data = before
	was := c.Milli()
	w.now += 1000
	if err := a.Step(t.Context()); !errors.Is(err, ErrNoneFree) || !c.Clean() || c.Milli() != was {
		t.Errorf("%v; the mark moved by %d ms", err, c.Milli()-was)
	}
}

func TestElsewhereKnown(t *testing.T) {
	for _, test := range []struct {
		kept, now string
		elsewhere bool
	}{{"a", "a", false}, {"", "a", false}, {"a", "", false}, {"a", "b", true}} {
		w := newWorld()
		d := &disk{kept: &Kept{Prefix: "p", Cluster: test.kept, Mark: w.now + 1}}
		o := w.owner(t, "a", d.use, func(c *Config) { c.Store = clustered{w, &test.now} })
		if err := errors.Join(o.locate(t.Context()), o.elsewhere(table{})); (err != nil) != test.elsewhere {
			t.Errorf("kept in cluster %q, now in %q: %v", test.kept, test.now, err)
		}
	}
}

// A former floor is kept or replaced, depending on its mark and on Again.
func TestFloorAt(t *testing.T) {
	const margin = 1000
	w := newWorld()
	from := func(since uint64) Floor { return Floor{since, since + testHold, w.now, founded.Places} }
	for name, test := range map[string]struct {
		was   Floor
		again bool
		want  Floor
	}{
		"is not past":        {Floor{1, w.now, 7, founded.Places}, false, Floor{1, w.now, 7, founded.Places}},
		"is past":            {Floor{1, w.now - 1, 7, founded.Places}, false, from(w.now + margin)},
		"is past, Again set": {Floor{1, w.now - 1, 7, founded.Places}, true, from(w.now + margin)},
		"is just ahead":      {Floor{1, w.now + margin, 7, founded.Places}, true, from(w.now + margin + 1)},
	} {
		w.data = map[string]string{keys{"p"}.floor(): test.was.String()}
		r := w.restored(margin * time.Millisecond)
		r.Again = test.again
		if f, err := AfterRestore(t.Context(), w, "p", r); err != nil || f != test.want {
			t.Errorf("%s: %+v, %v, want %+v", name, f, err, test.want)
		}
	}
	r := w.restored(margin * time.Millisecond)
	w.data[keys{"p"}.floor()] = r.floor(0).String()
	if f, err := Withdraw(t.Context(), w, "p", r); err != nil || f != r.floor(0) {
		t.Errorf("withdrawn in favor of the same floor: %+v, %v", f, err)
	}
}

// unlisted is a store that notices when it was restored, but cannot list its keys.
type unlisted struct{ *signing }

func (unlisted) List(context.Context, string) (map[string]string, error) { return nil, errNever }

// After a sign of a restore, an owner writes one floor, above the former one; it writes none if
// another node wrote it or the store cannot be read.
func TestSigns(t *testing.T) {
	w := newWorld()
	key := keys{"p"}.floor()
	s := &signing{dated: dated{world: w}}
	a := w.owner(t, "a", func(c *Config) { c.Store = unlisted{s} })
	s.sign = "lower"
	if err := a.Step(t.Context()); !errors.Is(err, errNever) || len(w.data) > 1 {
		t.Errorf("%v, %v", err, w.data)
	}
	a.Store = s
	w.fail = func(value string) error { // the floor cannot be written, but a number could
		if _, err := parseFloor(value); err == nil {
			return errNever
		}
		return nil
	}
	if err := a.Step(t.Context()); !errors.Is(err, errNever) || len(w.data) > 1 {
		t.Errorf("claimed without a floor: %v, %v", err, w.data)
	}
	w.fail = nil
	step(t, a)
	first, err := parseFloor(w.data[key])
	if err != nil || first == founded {
		t.Fatal(first, err)
	}
	w.now++
	if step(t, a); w.data[key] != first.String() {
		t.Errorf("the floor was written again: %v", w.data[key])
	}
	s.sign = "lower"
	step(t, a)
	if f, err := parseFloor(w.data[key]); err != nil || f.Since != first.Mark+1 {
		t.Errorf("floor after a restore to floor %v: %v, %v", first, f, err)
	}

	for _, test := range []struct {
		before uint64 // ms from the former floor's Since to the last good step
		ahead  uint64 // ms from the clock to the former floor's Mark
		want   uint64 // ms from the clock to the new floor's Since; 0 if the former floor stays
	}{
		{0, 0, 0},           // written since the restore, by another node
		{1, 0, 10_000},      // written before the restore
		{1, 10_000, 10_001}, // has not passed
		{1, 20_000, 20_001}, // has not passed, and is further ahead
	} {
		w = newWorld()
		s := &signing{dated: dated{world: w}, sign: "lower"}
		o := w.owner(t, "a", func(c *Config) { c.Store = s })
		was := Floor{o.good - test.before, w.now + test.ahead, 7, founded.Places}
		w.data[key] = was.String()
		want := was.Since
		if test.want > 0 {
			want = w.now + test.want
		}
		err := o.mend(t.Context())
		if f, parseErr := parseFloor(w.data[key]); err != nil || parseErr != nil || f.Since != want {
			t.Errorf("%+v: %v, %v, %v", test, f, err, parseErr)
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := New(Config{Hold: minHold, Random: func() uint64 { return 7 }})
	if err != nil || o.Random() != 7 || o.sixth != minHold/6 {
		t.Error(err)
	}
	if a, b := random(), random(); a == b {
		t.Error("two random numbers are the same")
	}
	if got := DefaultMargin(15 * time.Second); got != 5*time.Second {
		t.Errorf("the margin is %v", got)
	}
	o, err = New(Config{})
	if err != nil || o.pause(errNever) != time.Second || o.pause(ErrNoneFree) != 10*time.Second {
		t.Errorf("%v; the pauses are %v, %v", err, o.pause(errNever), o.pause(ErrNoneFree))
	}
	for late, want := range map[uint64]bool{0: true, 1: false} {
		if got := (Value{Base: 1, After: 1000, Mark: 2000, Hold: 100}).ahead(900 + late); got != want {
			t.Errorf("%d ms late: %v", late, got)
		}
	}
}

// A failed step does not count as a good one. The first failure is logged, and so is the next
// success.
func TestTrouble(t *testing.T) {
	w, logs := newWorld(), &warns{}
	a := w.owner(t, "a", logs.use)
	w.down = errNever
	a.Step(t.Context())
	if logs.count() > 0 {
		t.Error("a failure before the first number is logged")
	}
	w.down = nil
	step(t, a)
	logs.Reset()
	good := a.good
	for i, down := range []error{nil, errNever, errNever, nil, nil} {
		w.now += 1000
		w.down = down
		a.Step(t.Context())
		logged := strings.Count(logs.String(), "level=INFO") + 10*logs.count()
		if want := []int{0, 10, 0, 1, 0}[i]; logged != want {
			t.Errorf("step %d: %d lines", i, logged)
		}
		if down == nil {
			good = w.now
		}
		if a.good != good {
			t.Errorf("step %d: the last good step was at %d, want %d", i, a.good, good)
		}
	}
}

// Numbers out of range are not claimed, and the only free number in the range is found.
func TestRange(t *testing.T) {
	w := newWorld()
	for n := range uint64(13) {
		w.data[keys{"p"}.number(n)] = Value{Mark: w.now + 1, Generation: 1, Token: 1, Name: "x"}.String()
	}
	delete(w.data, keys{"p"}.number(11))
	for _, n := range []uint64{0, 12} {
		w.data[keys{"p"}.number(n)] = Value{Mark: 1, Generation: 1, Token: 1, Name: "a"}.String()
	}
	w.random = 10 // so that the search for an unused number begins at the first
	if c := step(t, w.owner(t, "a", func(c *Config) { c.First, c.Last = 1, 11 })); c.Number() != 11 {
		t.Errorf("%d is claimed", c.Number())
	}
	w.now = w.value(t, 1).Mark
	if err := w.owner(t, "b", func(c *Config) { c.Last = 10 }).Step(t.Context()); !errors.Is(err, ErrNoneFree) {
		t.Errorf("at the mark: %v", err)
	}
}

// A value is parsed from its text form, and from no other text.
func TestValueText(t *testing.T) {
	for _, v := range []Value{
		{}, {After: 1}, {Hold: 1}, {After: 1, Name: "a"}, {Base: 1}, {Base: 1, Name: "a", Hold: 2},
		{Name: "a after=b"}, {Name: "a base=b"}, {Name: "a after=b base=c"},
	} {
		if got, err := parseValue(v.String()); got != v || err != nil {
			t.Errorf("%q: %+v, %v", v.String(), got, err)
		}
	}
	for _, text := range []string{"1", "1 2 3", "1 2 3 4 held", "1 99999999999999999999 1 0000000000000001 held a"} {
		if v, err := parseValue(text); err == nil {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// slow is a store whose writes take a second, even if ctx is done.
type slow struct {
	*world
	t       *testing.T
	writing atomic.Bool
}

func (s *slow) Swap(ctx context.Context, have, write map[string]string) (bool, error) {
	s.writing.Store(true)
	defer s.writing.Store(false)
	time.Sleep(time.Second) // virtual time
	return s.world.Swap(ctx, have, write)
}

func (s *slow) Get(ctx context.Context, keys ...string) ([]string, error) {
	if s.writing.Load() {
		s.t.Error("the store is read during a write")
	}
	return s.world.Get(ctx, keys...)
}

// The number is returned after the last step has ended.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		config := w.owner(t, "a").Config
		config.Clock = func() uint64 { return uint64(time.Now().UnixMilli()) }
		s := &slow{world: w, t: t}
		config.Store = s
		o, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := o.Claim()
		time.Sleep(o.Hold/3 + time.Second/2)
		if !s.writing.Load() {
			t.Error("no step is under way")
		}
		if err := o.Close(t.Context()); err != nil || !w.value(t, c.Number()).Free {
			t.Errorf("%v, %+v", err, w.value(t, c.Number()))
		}
	})
}
