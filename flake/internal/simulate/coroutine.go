package simulate

import (
	"iter"
	"time"
)

// task is what goes on beside others, in virtual time. One runs at a time, until it
// waits.
type task struct {
	f     *fleet
	m     *Member // whose it is; nil: nobody's
	at    time.Duration
	next  func() (time.Duration, bool)
	stop  func()
	yield func(time.Duration) bool
	over  bool
}

// spawn begins a task. A crash in it is its member's.
func (f *fleet) spawn(m *Member, do func(*task)) *task {
	t := &task{f: f, m: m, at: f.now}
	t.next, t.stop = iter.Pull(func(yield func(time.Duration) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(crash); !ok {
					panic(r)
				}
				if m != nil && !t.over {
					m.crashed = true
				}
			}
		}()
		do(t)
	})
	f.tasks = append(f.tasks, t)
	return t
}

// wait lets true time pass, and others act.
func (t *task) wait(d time.Duration) {
	if !t.yield(d) {
		panic(crash{})
	}
}

// end ends a task that waits.
func (t *task) end() {
	t.over = true
	t.stop()
}

// run lives until a time.
func (f *fleet) run(until time.Duration) {
	for {
		var first *task
		left := f.tasks[:0]
		for _, t := range f.tasks {
			if t.over {
				continue
			}
			left = append(left, t)
			if t.m != nil {
				t.at = max(t.at, t.m.frozen)
			}
			if first == nil || t.at < first.at {
				first = t
			}
		}
		f.tasks = left
		if first == nil || first.at > until {
			break
		}
		f.now = max(f.now, first.at)
		f.resume(first)
	}
	f.now = max(f.now, until)
}

func (f *fleet) resume(t *task) {
	m := t.m
	if m != nil {
		m.task = t
		m.machine.pass(max(f.now-m.machine.now, 0))
		f.ahead = max(f.ahead, m.machine.off)
	}
	d, more := t.next()
	t.over = t.over || !more
	t.at = f.now + d
	if m == nil {
		return
	}
	t.at = max(t.at, m.machine.now+d)
	if m.crashed {
		m.die()
	}
}
