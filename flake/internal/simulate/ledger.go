package simulate

import "fmt"

// A ledger has every id of a node, and finds what must not be:
//
//   - an id twice;
//   - an id that is not above the same caller's last of the generator, unless
//     Unordered;
//   - an id later than the mark that a power cut would leave;
//   - an id whose time is not one the clock showed during the call, so that
//     order across nodes is off by no more than the clocks are.
type ledger struct {
	runs   map[uint64][]run // by millisecond
	last   map[int]id       // by caller and generator
	report *Report
	m      *Machine
	seed   uint64
	any    bool // order
}

// A run of sequences, first and last included.
type run struct{ first, last uint32 }

type id struct {
	milli    uint64
	sequence uint32
}

func (a id) above(b id) bool {
	return a.milli > b.milli || a.milli == b.milli && a.sequence > b.sequence
}

func newLedger(m *Machine, seed uint64, report *Report, unordered bool) *ledger {
	return &ledger{map[uint64][]run{}, map[int]id{}, report, m, seed, unordered}
}

func (l *ledger) add(caller int, now id) {
	l.report.IDs++
	if l.seen(now) {
		l.wrong(&l.report.Duplicates, "id %d:%d twice", now.milli, now.sequence)
	}
	of := caller<<8 | int(now.sequence>>whose)
	if last, ok := l.last[of]; ok && !l.any && !now.above(last) {
		l.wrong(&l.report.Disorders, "caller %d: %d:%d after %d:%d", caller, now.milli, now.sequence, last.milli, last.sequence)
	}
	l.last[of] = now
}

// seen notes an id, and tells whether it was there.
func (l *ledger) seen(now id) bool {
	runs := l.runs[now.milli]
	for _, r := range runs {
		if r.first <= now.sequence && now.sequence <= r.last {
			return true
		}
	}
	for i := range runs {
		if now.sequence > 0 && runs[i].last == now.sequence-1 {
			runs[i].last++
			return false
		}
	}
	l.runs[now.milli] = append(runs, run{now.sequence, now.sequence})
	return false
}

func (l *ledger) wrong(count *int, format string, args ...any) {
	*count++
	l.m.trace("WRONG: "+format, args...)
	if l.report.First == "" {
		l.report.First, l.report.Seed = fmt.Sprintf(format, args...), l.seed
	}
}
