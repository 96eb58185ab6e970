package tick

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// While the wall clock is not stepped, the clock never goes back and is never ahead, however long
// a measurement takes. The first measurement that is shorter than a step finds the step.
func TestMeasure(t *testing.T) {
	for name, settled := range map[string]time.Duration{"at the settled offset": 0, "an hour behind it": time.Hour} {
		t.Run(name, func(t *testing.T) { testMeasure(t, int64(settled)) })
	}
}

func testMeasure(t *testing.T, settled int64) {
	rng := rand.New(rand.NewPCG(5, 6))
	gap := func() int64 { return rng.Int64N(1 << rng.IntN(25)) } // up to 16 ms
	c := systemClock{slept: func() int64 { return 0 }}
	mono, offset := int64(1), int64(time.Hour)
	c.settle(offset + settled)
	c.offset.Store(offset - gap())
	last := int64(0)
	for i := range 200_000 {
		stepped := i%1000 == 999
		by := int64(0)
		if stepped {
			by = rng.Int64N(2*int64(time.Second)) - int64(time.Second)
			offset += by
		}
		mono += gap()
		before := mono
		mono += gap()
		wall := mono + offset
		mono += gap()
		if !stepped { // another goroutine reads the clock just before the measurement
			last = c.offset.Load() + mono
		}
		c.measure(before, wall, mono)
		reading := c.offset.Load() + mono
		if !stepped && reading < last {
			t.Fatalf("the clock runs back by %d", last-reading)
		}
		if width := mono - before; !stepped && reading > mono+offset || abs(by) > width && abs(reading-mono-offset) > width {
			t.Fatalf("after a step by %d, measured within %d: off by %d", by, width, reading-mono-offset)
		}
		if stepped { // a step shorter than a measurement may not be noticed: start again
			c.offset.Store(offset - gap())
		}
		last = c.offset.Load() + mono
	}
}

// Only one of several concurrent measurements counts. A measurement older than the last does not
// count.
func TestMeasureAtATime(t *testing.T) {
	c := systemClock{slept: func() int64 { return 0 }}
	c.measuring.Lock()
	c.measure(100, 1100, 100)
	c.measuring.Unlock()
	if got := c.offset.Load(); got != 0 {
		t.Errorf("during another measurement the offset is %d", got)
	}
	c.measure(100, 1100, 100)
	c.measure(99, 2100, 100)
	if got := c.offset.Load(); got != 1000 {
		t.Errorf("after an older measurement the offset is %d", got)
	}
}

// While the machine is awake, slept returns the same time.
func TestSlept(t *testing.T) {
	for range 1000 {
		start, before := time.Now(), slept()
		time.Sleep(time.Millisecond) // the passing of time is what is tested
		after, passed := slept(), int64(time.Since(start))
		if abs(after-before) < passed/2 {
			return
		}
	}
	t.Error("the time asleep grows while the machine is awake")
}

func abs(n int64) int64 { return max(n, -n) }

func TestSystemClock(t *testing.T) {
	before := uint64(time.Now().UnixMilli())
	clock := SystemClock()
	if now := clock(); now < before {
		t.Errorf("the first reading is %d, after %d", now, before)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := uint64(0)
			for range 200_000 {
				now := clock()
				if now < last {
					t.Errorf("the clock went from %d back to %d", last, now)
					return
				}
				if wall := uint64(time.Now().UnixMilli()); now > wall {
					t.Errorf("the clock says %d, the wall clock %d", now, wall)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}

func TestSystemClockSeesSteps(t *testing.T) {
	for _, step := range []time.Duration{MaxStep - time.Second, -time.Hour} {
		c := newSystemClock()
		c.settle(c.settled - int64(step)) // as if it had been settled there before
		c.offset.Store(c.settled)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for abs(int64(c.milli())-time.Now().UnixMilli()) >= 500 {
			if ctx.Err() != nil {
				t.Fatalf("a step of %v is not seen", step)
			}
			runtime.Gosched()
		}
		cancel()
	}
}

// machine holds the clocks of a machine, set by hand, in ns.
type machine struct{ wall, mono, asleep int64 }

func (m *machine) pass(d time.Duration) { m.wall += int64(d); m.mono += int64(d) }
func (m *machine) step(d time.Duration) { m.wall += int64(d) }

func (m *machine) clock() *systemClock {
	return startClock(&systemClock{
		wall:  func() int64 { return m.wall },
		mono:  func() int64 { return m.mono },
		slept: func() int64 { return m.asleep },
	})
}

// After each change of the machine's clocks, the test checks how far the clock is from true time.
// At the start the machine shows true time.
func TestFarAheadIsDoubted(t *testing.T) {
	const day, hour, second = 24 * time.Hour, time.Hour, time.Second
	type change struct {
		step, pass, sleep time.Duration
		off               time.Duration
	}
	for name, changes := range map[string][]change{
		"a second a day ahead": {{step: day}, {pass: second}, {step: -day}, {step: day}, {pass: Doubt - second},
			{step: -day}},
		"it stays ahead": {{step: day}, {pass: Doubt - 1}, {pass: 1, off: day},
			{step: -second, off: day - second}},
		"as far as allowed": {{step: MaxStep, off: MaxStep}, {step: MaxStep, off: 2 * MaxStep}},
		"a little further":  {{step: MaxStep + 1}, {pass: Doubt, off: MaxStep + 1}},
		"ahead twice": {{step: day}, {pass: Doubt / 2}, {step: -day}, {pass: Doubt / 2}, {step: day},
			{pass: Doubt / 2}, {pass: Doubt / 2, off: day}},
		"further and further": {{step: day}, {pass: Doubt / 2}, {step: day}, {pass: Doubt - 1},
			{pass: 1, off: 2 * day}},
		"slewed as far as allowed": {{step: day}, {pass: Doubt / 2}, {step: MaxStep},
			{pass: Doubt / 2, off: day + MaxStep}},
		"back as far as allowed": {{step: -MaxStep, off: -MaxStep}, {step: 2 * MaxStep, off: -MaxStep}},
		"slept, and set as far as allowed": {{sleep: day, step: MaxStep, off: day + MaxStep},
			{sleep: day, step: MaxStep + 1, off: day + MaxStep}},
		"slewed while doubted": {{step: day}, {pass: Doubt / 2}, {step: second},
			{pass: Doubt / 2, off: day + second}},
		"back, and ahead to true time": {{step: -day, off: -day}, {pass: hour, off: -day}, {step: day}, {step: day}},
		"back, and ahead of true time": {{step: -day, off: -day}, {step: 3 * day}, {pass: Doubt, off: 2 * day}},
		"ahead, and behind true time":  {{step: day}, {step: -2 * day, off: -day}, {step: 2 * day}, {pass: Doubt, off: day}},
		"back, and caught up": {{step: -hour, off: -hour}, {pass: hour - 1, off: -hour}, {step: hour},
			{step: -hour, off: -hour}, {pass: hour, off: -hour}, {step: hour, off: -hour}},
		"the machine slept":           {{sleep: day, off: day}},
		"it slept, and was set":       {{sleep: day, step: hour}, {pass: Doubt, off: day + hour}},
		"it slept a while before":     {{sleep: hour, off: hour}, {step: hour, off: hour}},
		"it slept, the clock did not": {{sleep: hour, step: -hour}},
	} {
		m := &machine{wall: 1_700_000_000_000_000_000, mono: 12345}
		c := m.clock()
		right := m.wall
		for i, w := range changes {
			right += int64(w.pass)
			m.pass(w.pass)
			m.step(w.step + w.sleep)
			m.asleep += int64(w.sleep)
			if got, want := c.milli(), uint64(right+int64(w.off))/1e6; got != want {
				t.Errorf("%s: after %d, off by %v, want %v", name, i, time.Duration(int64(got)*1e6-right), w.off)
			}
			if ahead := max(time.Duration(m.wall-right)-w.off, 0); c.doubted() != ahead && !strings.Contains(name, "slew") {
				t.Errorf("%s: after %d, %v are doubted, want %v", name, i, c.doubted(), ahead)
			}
		}
	}
}

// A wall clock before 1970 counts as 1970.
func TestMonotonicOf(t *testing.T) {
	wall, mono := int64(5_000_000_000), int64(2_000_000_000)
	clock := MonotonicOf(func() int64 { return wall }, func() int64 { return mono })
	wall = 0 // it is no longer read
	for _, c := range []struct {
		mono int64
		want uint64
	}{{2_000_000_000, 5000}, {2_001_999_999, 5001}, {1_000_000_000, 4000}, {-4_000_000_000, 0}} {
		mono = c.mono
		if got := clock(); got != c.want {
			t.Errorf("at %d ns it is %d ms", mono, got)
		}
	}
}
