package simulate

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flake-go/flake/flake/internal/tick"
)

// Report counts the events and the broken rules in one or more lives.
type Report struct {
	Nodes, IDs, Starts, Refusals       int
	Kills, PowerCuts, CleanStops       int
	ClockFaults, DiskFaults, Glitches  int
	Bursts, BadCalls, Errors, Preempts int
	Damages, Shares, Shared            int // Shared counts second processes that started
	Years                              float64

	Duplicates, Disorders, PastMark, OffClock, SecondNodes, Stuck, Lost int

	Finding
}

// Wrong returns the number of violations.
func (r Report) Wrong() int {
	return r.Duplicates + r.Disorders + r.PastMark + r.OffClock + r.SecondNodes + r.Stuck + r.Lost
}

// A Finding is the first broken rule, and the seed of the life that broke it.
type Finding struct {
	First string
	Seed  uint64
}

func (f *Finding) add(o Finding) {
	if o.First != "" && (f.First == "" || o.Seed < f.Seed) {
		*f = o
	}
}

// note counts a broken rule and keeps its description if it is the first.
func (f *Finding) note(count *int, seed uint64, what string) {
	*count++
	if f.First == "" {
		*f = Finding{what, seed}
	}
}

// sum adds the counts in more to those in *to and keeps the first Finding.
func sum[R any](to *R, more R) {
	t, m := reflect.ValueOf(to).Elem(), reflect.ValueOf(more)
	for i := range t.NumField() {
		switch f := t.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(f.Int() + m.Field(i).Int())
		case reflect.Float64:
			f.SetFloat(f.Float() + m.Field(i).Float())
		case reflect.Struct:
			f.Addr().Interface().(*Finding).add(m.Field(i).Interface().(Finding))
		}
	}
}

var (
	simTimes = flag.Int("simulate.times", 1, "multiply the number of lives by this")
	simSeed  = flag.Uint64("simulate.seed", 0, "run only the life of this seed, and trace it")
)

// Check runs n lives, multiplied by the flag -simulate.times, or only the life with the seed
// -simulate.seed. It fails if a rule is broken or if the lives are too easy.
func Check(t *testing.T, c Config, n int) Report {
	t.Helper()
	if *simSeed != 0 {
		r := Run(c, *simSeed, t.Logf)
		if r.Wrong() > 0 {
			t.Errorf("seed %d: %s; report: %+v", *simSeed, r.First, r)
		}
		return r
	}
	n *= *simTimes
	r := Many(c, 1, n) // seed 0 means none
	t.Logf("%+v", r)
	if r.Wrong() > 0 {
		t.Errorf("seed %d: %s; run it again with -run %s$ -v -simulate.seed=%d", r.Seed, r.First, t.Name(), r.Seed)
	}
	if crashes := r.Kills + r.PowerCuts; crashes < 6*n || r.ClockFaults < 6*n || r.Glitches < n {
		t.Errorf("only %d crashes, %d clock faults and %d glitches of the clock", crashes, r.ClockFaults, r.Glitches)
	}
	if r.Damages < n || r.Shares < n/4 || r.Shared == 0 {
		t.Errorf("only %d damaged files, and %d processes without a lock, of which %d started", r.Damages, r.Shares, r.Shared)
	}
	return r
}

// Many runs the lives with the seeds first to first+nodes-1, on all processors.
func Many(c Config, first uint64, nodes int) Report {
	return each(uint64(nodes), func(i uint64) Report { return Run(c, first+i, nil) })
}

// Find runs the same lives as Many, 20 at a time, until found returns true for one of the reports.
// It returns false if that never happens.
func Find(c Config, first uint64, nodes int, found func(Report) bool) bool {
	const few = 20
	for i := 0; i < nodes; i += few {
		if found(Many(c, first+uint64(i), few)) {
			return true
		}
	}
	return false
}

// each calls run for 0 to n-1, on all processors, and returns the sum of the reports.
func each[R any](n uint64, run func(i uint64) R) (total R) {
	var (
		mu   sync.Mutex
		next atomic.Uint64
		wg   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				one := run(i)
				mu.Lock()
				sum(&total, one)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return total
}

// life is the life of one node, across all its processes.
type life struct {
	Config
	m      *Machine
	node   Node // nil while it is down
	ledger *ledger
	report *Report
	tick   time.Duration // when (true time) the next Tick is due
	depth  int           // the number of nested callers
	steps  int           // the number of the clock's steps when the outermost caller began
	first  int           // the lowest number of a caller of node

	file []byte // the durable content of the file at Path when mark last read it
	sure func(sequence uint32) (milli uint64, err error)
}

const (
	events    = 60
	allowable = 30 * 24 * time.Hour
)

// Run runs the life with the given seed. It reports every event to trace, unless trace is nil.
func Run(c Config, seed uint64, trace func(format string, args ...any)) Report {
	report := Report{Nodes: 1}
	rng := rand.New(rand.NewPCG(seed, 0))
	l := &life{Config: c, m: newMachine(rng), report: &report}
	l.ledger = newLedger(l.m, seed, &report, c.Unordered)
	l.m.Disk.lying = c.LyingDisk
	born := l.m.now
	if trace != nil {
		l.m.trace = func(format string, args ...any) {
			trace("%s %s", (l.m.now - born).String(), fmt.Sprintf(format, args...))
		}
	}
	for range events {
		if l.node == nil {
			l.alive(l.restart)
		} else {
			l.alive(l.event)
		}
	}
	report.Years = (l.m.now - born).Hours() / 24 / 365
	return report
}

// alive calls do, during which the process may crash.
func (l *life) alive(do func()) {
	if crashed(do) {
		l.crash()
	}
}

// crash kills the process or, half of the time, cuts the power.
func (l *life) crash() {
	if l.m.rng.IntN(2) == 0 {
		l.kill()
		return
	}
	l.end()
	l.m.trace("power cut")
	l.report.PowerCuts++
	l.m.Disk.powerCut()
	l.m.pass(l.m.span(time.Minute))
	if l.m.rng.IntN(3) == 0 { // after the reboot the clock differs
		l.report.ClockFaults++
		l.m.shift(l.m.span(10*time.Second) * time.Duration(1-2*l.m.rng.IntN(2)))
	}
}

func (l *life) kill() {
	l.m.trace("killed")
	l.report.Kills++
	l.end()
	clear(l.m.Disk.locked)
}

func (l *life) end() {
	l.node, l.first, l.depth, l.m.preempt, l.m.Disk.armed, l.m.hurry = nil, 0, 0, nil, 0, false
}

// restart starts the node again, immediately or much later. If it does not start, an operator
// waits or repairs the cause.
func (l *life) restart() {
	if l.m.rng.IntN(3) == 0 {
		l.m.pass(l.m.span(100 * 24 * time.Hour))
	}
	if l.Marks != nil && !l.LyingDisk && l.m.rng.IntN(4) == 0 {
		if what := l.m.Disk.damage(Path); what != "" {
			l.report.Damages++
			l.m.trace("damage: %s", what)
		}
	}
	if l.m.rng.IntN(8) == 0 {
		l.m.Disk.armed = 1 + l.m.rng.IntN(20)
	}
	allowed := allowable
	for try := range 6 {
		if l.start(allowed) == nil {
			return
		}
		switch {
		case try == 0:
			l.m.pass(l.m.span(20 * time.Second))
		case try == 1:
			l.m.Disk.fails, l.m.Disk.slow = nil, 0
		case try == 2:
			l.m.drift, l.m.frozen = 0, 0
			l.m.shift(-l.m.off)
		case try == 3:
			allowed = 200 * 365 * 24 * time.Hour
		case try == 4:
			// The clock of the last run was ahead: wait for the time that it showed.
			l.m.pass(400 * 24 * time.Hour)
		}
	}
	l.ledger.wrong(&l.report.Stuck, "the node can no longer start")
}

func (l *life) start(allowed time.Duration) error {
	l.report.Starts++
	l.m.top = 0
	node := l.New(l.m)
	err := node.Start(allowed)
	l.m.trace("start: %v", err)
	if err != nil {
		l.report.Refusals++
		return err
	}
	l.node, l.tick = node, l.m.now+time.Second
	return nil
}

// live lets time pass and calls Tick each second. If d is long, it skips all but the last
// seconds.
func (l *life) live(d time.Duration) {
	until := l.m.now + d
	for l.tick < until {
		l.m.pass(max(l.tick-l.m.now, 0))
		if l.node.Tick(); until-l.m.now > 5*time.Second {
			l.m.pass(until - l.m.now - 3*time.Second)
		}
		l.tick = l.m.now + time.Second
	}
	l.m.pass(max(until-l.m.now, 0))
}

func (l *life) event() {
	rng := l.m.rng
	l.live(l.m.span(10 * time.Second))
	switch p := rng.IntN(100); {
	case p < 40:
		l.ids(0, 1+rng.IntN(1+rng.IntN(300)))
	case p < 41 && !l.NoBursts && rng.IntN(5) == 0:
		l.report.Bursts++
		l.m.hurry = true
		perTick := cmp.Or(l.PerTick, 1<<16)
		l.ids(0, perTick+perTick/16+1+rng.IntN(perTick))
		l.m.hurry = false
	case p < 46 && !l.NoBadCalls:
		l.report.BadCalls++
		l.node.BadCall()
	case p < 48:
		l.live(l.m.span(20 * 24 * time.Hour))
	case p < 50:
		second := l.New(l.m)
		if l.Marks != nil && second.Start(allowable) == nil {
			l.ledger.wrong(&l.report.SecondNodes, "a second node started on the file")
		}
	case p < 51 && l.Marks != nil && !l.LyingDisk:
		l.share()
		return
	case p < 54:
		l.m.trace("clean stop")
		l.report.CleanStops++
		l.node.Stop()
		l.node = nil
		clear(l.m.Disk.locked)
	case p < 62:
		l.diskFault()
	case p < 65:
		l.glitch()
		return
	case p < 82:
		l.report.ClockFaults++
		l.m.trace("clock: %s", l.m.fault())
	case p < 90:
		panic(crash{})
	default: // crash in the middle of a disk operation
		l.m.Disk.armed = 1 + rng.IntN(24)
	}
	l.ids(0, 1+rng.IntN(3))
}

// share starts a second process on the same file, without a lock, and lets both make ids. Then an
// operator ends both.
func (l *life) share() {
	l.report.Shares++
	all := []Node{l.node}
	second := l.New(l.m)
	clear(l.m.Disk.locked)
	err := second.Start(allowable)
	if l.m.trace("a second process starts: %v", err); err == nil {
		l.report.Shared++
		all = append(all, second)
	}
	const callers = 64 // more than a node has
	for range 1 + l.m.rng.IntN(8) {
		i := l.m.rng.IntN(len(all))
		l.node, l.first = all[i], i*callers
		l.live(l.m.span(5 * time.Second))
		l.ids(0, 1+l.m.rng.IntN(300))
	}
	l.kill()
}

func (l *life) diskFault() {
	l.report.DiskFaults++
	d := l.m.Disk
	switch l.m.rng.IntN(6) {
	case 0:
		d.fails = syscall.ENOSPC
	case 1:
		d.fails = syscall.EROFS
	case 2:
		d.fails = syscall.EIO // sometimes
	case 3:
		d.slow = l.m.span(2 * time.Second)
	default:
		d.fails, d.slow = nil, 0
	}
	l.m.trace("disk: %v, slow %v", d.fails, d.slow)
}

// ids makes ids for a caller. While this caller reads the clock, other callers may run.
func (l *life) ids(caller, n int) {
	if l.node == nil {
		return
	}
	if caller == 0 {
		l.steps = l.m.steps
		l.m.preempt = func() {
			if l.depth < 3 {
				l.report.Preempts++
				l.m.pass(l.m.span(2*time.Millisecond) / 100)
				l.ids(1+l.depth*8+l.m.rng.IntN(8), 1+l.m.rng.IntN(3))
			}
		}
		defer func() { l.m.preempt = nil }()
	}
	l.depth++
	doubtful, made := l.m.doubtful(), 0
	before, after := l.m.view(nil, doubtful), []times(nil)
	err := l.node.IDs(n, func(milli uint64, sequence uint32) {
		made++
		l.ledger.add(l.first+caller, id{milli, sequence})
		if l.Marks != nil && !l.Drifts && l.m.steps == l.steps {
			if after = l.m.view(after[:0], doubtful); !showed(milli, max(l.Unit, 1), before, after) {
				l.ledger.wrong(&l.report.OffClock, "id at %d while clocks went from %d to %d", milli, before, after)
			}
		}
		if l.Marks != nil && (made == 1 || made == n) {
			if mark, err := l.mark(sequence); err != nil || milli > mark {
				l.ledger.wrong(&l.report.PastMark, "id %d of %d, at %d, with the mark at %d, %v", made, n, milli, mark, err)
			}
		}
	})
	l.depth--
	if err != nil {
		l.report.Errors++
	}
	if caller == 0 && n > 1 || err != nil {
		l.m.trace("caller %d: %d of %d ids, %v", caller, made, n, err)
	}
}

// mark returns the mark that would survive a power cut.
func (l *life) mark(sequence uint32) (milli uint64, err error) {
	if file := l.m.Disk.sure(Path); l.sure == nil || !bytes.Equal(file, l.file) {
		l.file, l.sure = bytes.Clone(file), l.Marks(file)
	}
	return l.sure(sequence)
}

// glitch sets the clock far ahead, and back before a node believes it. In between, the node may be
// called and killed. A node that could make ids before the glitch must make ids after it.
func (l *life) glitch() {
	rng := l.m.rng
	fit := l.fit()
	l.report.Glitches++
	l.m.glitch(tick.MaxStep+l.m.span(40*24*time.Hour), l.m.span(tick.Doubt-10*time.Second))
	for l.m.ends > 0 {
		wait := min(l.m.span(10*time.Second), l.m.ends-l.m.now)
		if l.node == nil {
			l.m.pass(wait)
			continue
		}
		l.live(wait)
		if rng.IntN(3) > 0 {
			l.ids(0, 1+rng.IntN(3))
		}
		if rng.IntN(8) == 0 {
			l.kill()
		}
	}
	if l.node == nil {
		if err := l.start(allowable); err != nil {
			if fit {
				l.ledger.wrong(&l.report.Lost, "after the clock was ahead, the node does not start: %v", err)
			}
			return
		}
	}
	if fit && !l.answers() {
		l.ledger.wrong(&l.report.Lost, "after the clock was ahead, there are no ids")
	}
}

// fit reports whether nothing is wrong with the machine and the node makes ids.
func (l *life) fit() bool {
	m := l.m
	well := m.Disk.fails == nil && m.Disk.slow == 0 && m.Disk.armed == 0 && m.armed == 0 && m.now >= m.frozen
	return l.Marks != nil && !l.Drifts && well && m.wall() >= m.top && !m.doubtful() && l.answers()
}

func (l *life) answers() bool {
	errors := l.report.Errors
	l.ids(0, 1)
	return l.report.Errors == errors
}

// A ledger records every id of a node, and finds broken rules:
//
//   - an id is a duplicate;
//   - an id is not above the caller's last id from the same generator, unless Unordered;
//   - an id is later than the mark that would survive a power cut;
//   - the clock did not show the time of an id during the call. This rule keeps ids of several
//     nodes from being out of order by more than the nodes' clocks differ.
type ledger struct {
	runs      runs[uint64] // by millisecond
	last      map[int]id   // by caller and generator
	report    *Report
	m         *Machine
	seed      uint64
	unordered bool // as in Config
}

// runs are the used sequences, keyed by the other parts that identify an id.
type runs[K comparable] map[K][]run

// A run is a range of sequences, including first and last.
type run struct{ first, last uint32 }

// add adds a run and reports whether any of its sequences was already used.
func (r runs[K]) add(key K, now run) (twice bool) {
	for _, other := range r[key] {
		if now.first <= other.last && other.first <= now.last {
			return true
		}
	}
	for i, other := range r[key] {
		if now.first > 0 && other.last == now.first-1 {
			r[key][i].last = now.last
			return false
		}
	}
	r[key] = append(r[key], now)
	return false
}

type id struct {
	milli    uint64
	sequence uint32
}

func (a id) above(b id) bool {
	return a.milli > b.milli || a.milli == b.milli && a.sequence > b.sequence
}

func newLedger(m *Machine, seed uint64, report *Report, unordered bool) *ledger {
	return &ledger{runs[uint64]{}, map[int]id{}, report, m, seed, unordered}
}

func (l *ledger) add(caller int, now id) {
	l.report.IDs++
	if l.runs.add(now.milli, run{now.sequence, now.sequence}) {
		l.wrong(&l.report.Duplicates, "id %d:%d repeats", now.milli, now.sequence)
	}
	key := caller<<8 | int(now.sequence>>generatorBit)
	if last, ok := l.last[key]; ok && !l.unordered && !now.above(last) {
		l.wrong(&l.report.Disorders, "caller %d: %d:%d after %d:%d",
			caller, now.milli, now.sequence, last.milli, last.sequence)
	}
	l.last[key] = now
}

func (l *ledger) wrong(count *int, format string, args ...any) {
	l.m.trace("WRONG: "+format, args...)
	l.report.note(count, l.seed, fmt.Sprintf(format, args...))
}
