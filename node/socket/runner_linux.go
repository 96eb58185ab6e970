package socket

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// runner reads the connections whose peers run on one processor, in one goroutine. If that is
// in a step for long, it is replaced by a new one for the other connections, and ends with the
// step.
type runner struct {
	epoll   int
	current atomic.Pointer[conn] // its step is being called
	steps   atomic.Uint64        // started
	checked atomic.Uint64        // steps at the last check
	asleep  atomic.Bool          // the timer is not set
	timer   *time.Timer          // calls check
}

var runners = struct {
	sync.Mutex
	at map[int]*runner // by processor
}{at: make(map[int]*runner)}

var (
	awake atomic.Int32 // goroutines of runners that do not wait for events
	stuck atomic.Int32 // steps that have not ended although the goroutine was replaced

	// Each may have half of the threads for connections.
	maxStuck   = sync.OnceValue(func() int32 { return int32(min(MaxStuck, reserve.Threads()/2)) })
	maxRunners = sync.OnceValue(func() int { return int(max(min(int64(runtime.GOMAXPROCS(0)), reserve.Threads()/2), 1)) })
)

// runnerAt returns the runner of a processor. Without a descriptor for it runnerAt returns
// another one, or nil.
func runnerAt(cpu int) *runner {
	cpu %= maxRunners()
	runners.Lock()
	defer runners.Unlock()
	r := runners.at[cpu]
	if r == nil {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil || reserve.CheckNumber(fd) != nil {
			unix.Close(fd)
			for _, r = range runners.at {
				break
			}
			return r
		}
		r = &runner{epoll: fd}
		r.timer = time.AfterFunc(longStep, r.check)
		runners.at[cpu] = r
		go r.run()
	}
	return r
}

// run calls steps. Events may be stale: a descriptor may now belong to another connection. A
// step without data is a no-op.
func (r *runner) run() {
	runtime.LockOSThread() // otherwise a call costs a quarter more; never unlocked, as it is pinned
	var events [64]unix.EpollEvent
	t := newThread()
	defer t.runQueue.Close()
	for {
		n, _ := unix.EpollWait(r.epoll, events[:], -1)
		awake.Add(1)
		now := time.Now()
		for _, e := range events[:max(n, 0)] {
			if !r.handle(e, now, t) {
				awake.Add(-1)
				return
			}
		}
		if now.Sub(t.yielded) >= yieldTime {
			t.yielded = now
			if int(awake.Load()) < runtime.GOMAXPROCS(0) {
				runtime.Gosched()
			}
		}
		awake.Add(-1)
	}
}

// handle handles an event, and reports whether the goroutine has not been replaced.
func (r *runner) handle(e unix.EpollEvent, now time.Time, t *thread) bool {
	conns.RLock()
	c := conns.byFD[e.Fd]
	conns.RUnlock()
	if c == nil {
		return true
	}
	step := c.arrived(r, e.Events)
	if step == nil {
		return true
	}
	err := step()
	for c.layered && err == nil && r.current.Load() == c {
		err = step()
	}
	t.octets += c.octets
	c.octets = 0
	if !c.stepped(r, err) {
		return false
	}
	if now.Sub(t.checked) >= checkTime {
		t.checked = now
		if cpu, here := c.follow(r); here {
			t.follow(now, cpu)
		}
	}
	return true
}

// begin begins a step.
func (r *runner) begin(c *conn) {
	r.steps.Add(1)
	r.current.Store(c)
	if r.asleep.CompareAndSwap(true, false) {
		r.timer.Reset(longStep)
	}
}

// check replaces the goroutine if a step takes long.
func (r *runner) check() {
	r.asleep.Store(true) // a step that begins from now on sets the timer
	c, steps := r.current.Load(), r.steps.Load()
	before := r.checked.Swap(steps)
	if c != nil && steps == before {
		c.mu.Lock()
		r.replace(c)
		c.mu.Unlock()
	}
	if (c != nil || steps != before) && r.asleep.CompareAndSwap(true, false) {
		r.timer.Reset(longStep)
	}
}

// replace starts another goroutine if this one is in c's step. The caller must hold c.mu.
func (r *runner) replace(c *conn) {
	if r.current.Load() == c {
		c.drop(nil)
		r.current.Store(nil)
		stuck.Add(1)
		go r.run()
	}
}
