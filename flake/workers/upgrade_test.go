package workers

import (
	"fmt"
	"strings"
	"testing"
)

// before is a value as older nodes read it: six fields, ending with the name.
type before struct {
	mark, generation, token uint64
	state, name             string
}

func (b before) String() string {
	return fmt.Sprintf("1 %d %d %016x %s %s", b.mark, b.generation, b.token, b.state, b.name)
}

// Older and newer nodes share a store and take over each other's numbers. Ids of the new owner are
// later than the former owner's. So a fleet can be upgraded and downgraded node by node.
func TestRollingUpgrade(t *testing.T) {
	w := newWorld()
	only := func(c *Config) { c.First, c.Last = 1, 1 }
	key := keys{"p"}.number(1)
	shared := func(what string) (v before) {
		t.Helper()
		now := w.value(t, 1)
		n, err := fmt.Sscanf(w.data[key], "1 %d %d %x %s", &v.mark, &v.generation, &v.token, &v.state)
		if n != 4 || err != nil || v.mark != now.Mark || v.generation != now.Generation || v.token != now.Token ||
			(v.state == "free") != now.Free {
			t.Fatalf("%s: older nodes read %q as %+v, newer ones as %+v", what, w.data[key], v, now)
		}
		v.name = w.data[key][len(before{v.mark, v.generation, v.token, v.state, ""}.String()):]
		if v.String() != w.data[key] {
			t.Fatalf("%s: older nodes refuse %q", what, w.data[key])
		}
		if len(w.data) != 1 {
			t.Errorf("%s: other keys: %v", what, w.data)
		}
		return v
	}
	var last uint64 // of all ids so far
	for range 3 {
		a := w.owner(t, "a b", only)
		c := step(t, a)
		if c.After() < last {
			t.Errorf("ids after %d, but earlier ids may be up to %d", c.After(), last)
		}
		claimed := shared("claimed")
		w.now += 1000
		step(t, a)
		old := shared("extended")
		if old.mark <= claimed.mark || old.mark != c.Milli() {
			t.Errorf("an older node's ids would begin after %d, but ids may be up to %d", old.mark, c.Milli())
		}
		w.now = old.mark + 1
		w.data[key] = before{w.now + testHold, old.generation + 1, 99, "held", "old"}.String()
		if err := a.Step(t.Context()); err == nil || !c.IsLost() {
			t.Fatalf("an older node has the number, and the step returned %v", err)
		}
		last = w.now + testHold
		w.data[key] = before{last, old.generation + 1, 99, "free", "old"}.String()
		w.now = last + 1
		b := w.owner(t, "b", only)
		if c := step(t, b); c.After() < last {
			t.Errorf("ids after %d, but earlier ids may be up to %d", c.After(), last)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		last = shared("returned").mark
		w.now = last + 1
	}
}

// Older nodes treat a number with a spent time as taken until the end of that time. They keep the
// unknown fields when they release it.
func TestRollingUpgradeSpent(t *testing.T) {
	w := newWorld()
	v := Value{Mark: w.now - 1, Generation: 3, Token: 7, Name: "a b", After: w.now - 9, Hold: testHold, Nonce: 8, Base: 5,
		Spent: Span{w.now + 2*testHold, w.now + years}}
	if read, err := parseValue(v.String()); err != nil || read != v {
		t.Fatalf("%+v, %v", read, err)
	}
	fields := strings.SplitN(v.String(), " ", 6)
	known := fmt.Sprintf(tail, v.After, v.Hold, v.Nonce)
	name, ok := strings.CutSuffix(fields[5], known) // as read by nodes that know these fields
	if fields[1] != fmt.Sprint(v.Spent.Mark) || !ok || strings.Contains(name, "after=") {
		t.Fatalf("older nodes read that the number is free at %s and has the name %q", fields[1], name)
	}
	for _, after := range []string{known, fmt.Sprintf(tail, v.Spent.Mark, v.Hold, v.Nonce)} {
		w.data[keys{"p"}.number(1)] = before{v.Spent.Mark, v.Generation + 1, 99, "free", name + after}.String()
		if c := step(t, w.owner(t, "c", func(c *Config) { c.Last = 1 })); c.After() < v.Mark || c.Milli() > v.Spent.After ||
			c.entry.Spent != v.Spent {
			t.Errorf("ids from %d to %d, spent %v", c.After(), c.Milli(), c.entry.Spent)
		}
	}
}
