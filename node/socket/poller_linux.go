package socket

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// poller reads several busy connections in one goroutine, its runner. If the runner blocks in
// a step, a new runner takes over the other connections, and the old one ends with the step.
type poller struct {
	mu           sync.Mutex // guards the fields below, and gone, quiet and out of each pollConn
	epoll        int
	conns        map[int]*pollConn // by descriptor; nil if there is no runner
	runner       int               // number of runners so far
	current      *pollConn         // the connection whose step the latest runner is in, or nil
	steps        uint64            // steps started
	checkedSteps uint64            // steps at the last check
	watch        *time.Timer       // calls check
}

var sharedPoller poller

// pollConn is a connection in the poller.
type pollConn struct {
	detached *detached // its octets count the bytes read since the last sweep
	step     func() error
	back     chan error // receives one value, after the last step

	gone  bool // it has been dropped
	quiet bool // it was dropped because no data arrived
	out   bool // it was dropped because it delayed the other connections
}

// join adds a connection. It returns false if there is no descriptor for epoll.
func (p *poller) join(m *pollConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil && !p.open() {
		return false
	}
	fd := m.detached.fd
	if unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}) != nil {
		return false
	}
	m.detached.octets = 1 // not quiet at the first sweep
	p.conns[fd] = m
	return true
}

func (p *poller) open() bool {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if reserve.CheckNumber(fd) != nil {
		unix.Close(fd)
		return false
	}
	p.epoll, p.conns = fd, make(map[int]*pollConn)
	p.start()
	p.watch = time.AfterFunc(idle, p.check)
	return true
}

func (p *poller) start() {
	p.runner++
	p.current = nil
	go p.run(p.runner, p.epoll)
}

// run calls the step of each connection that has data. Events may be stale: a descriptor may
// now belong to another connection. A step without data is a no-op.
func (p *poller) run(runner, epoll int) {
	runtime.LockOSThread() // otherwise a call costs a quarter more
	defer runtime.UnlockOSThread()
	var events [MaxThreads]unix.EpollEvent
	swept, yielded := time.Now(), time.Now()
	worked := cpuTime()
	for {
		n, _ := unix.EpollWait(epoll, events[:], int(idle/time.Millisecond))
		for _, e := range events[:max(n, 0)] {
			if m := p.begin(int(e.Fd)); m != nil && !p.end(runner, m, m.step()) {
				return
			}
		}
		now := time.Now()
		if now.Sub(yielded) >= yieldTime {
			yielded = now
			yield(p.reading())
		}
		if passed := now.Sub(swept); passed >= idle {
			before := worked
			swept, worked = now, cpuTime()
			if !p.sweep(overloaded(worked-before, passed)) {
				return
			}
		}
	}
}

// overloaded reports whether a runner was always busy. worked is its CPU time, and passed the
// elapsed time.
func overloaded(worked, passed time.Duration) bool { return worked > passed*9/10 }

// cpuTime returns the CPU time of the calling thread.
func cpuTime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

func (p *poller) reading() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return threads.Load() - int32(len(p.conns)) + 1
}

func (p *poller) begin(fd int) *pollConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = p.conns[fd] // nil if the event is stale
	p.steps++
	return p.current
}

// end ends a step and reports whether the runner is still the latest.
func (p *poller) end(runner int, m *pollConn, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.drop(m)
	}
	if m.gone {
		m.back <- err
	}
	if p.runner != runner {
		return false
	}
	p.current = nil
	return true
}

// sweep drops the connections that are quiet, and a busy one if no other has a thread. If the
// runner was always busy, sweep evicts the connection that sends most, because its own thread can
// use another processor. When no connections are left, sweep closes the poller and returns false.
func (p *poller) sweep(always bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var most *pollConn
	sent := 0
	for _, m := range p.conns {
		n := m.detached.octets
		m.detached.octets = 0
		m.quiet = n == 0
		if m.quiet || threads.Load() == 1 {
			p.drop(m)
		} else if n > sent {
			most, sent = m, n
		}
	}
	if always && len(p.conns) > 1 {
		most.out = true
		p.drop(most)
	}
	if len(p.conns) > 0 {
		return true
	}
	unix.Close(p.epoll)
	p.conns = nil
	return false
}

// check replaces the runner if a step takes too long.
func (p *poller) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return
	}
	if p.current != nil && p.steps == p.checkedSteps {
		p.replace()
	}
	p.checkedSteps = p.steps
	p.watch.Reset(idle)
}

// goOnWithout replaces the runner if it is in m's step, which is about to wait.
func (p *poller) goOnWithout(m *pollConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == m {
		p.replace()
	}
}

func (p *poller) replace() {
	p.current.out = true
	p.drop(p.current)
	p.start()
}

func (p *poller) leave(m *pollConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(m)
}

// drop removes m, so that share returns: immediately, or after m's step if the runner is in it.
func (p *poller) drop(m *pollConn) {
	if m.gone {
		return
	}
	m.gone = true
	delete(p.conns, m.detached.fd)
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, m.detached.fd, nil)
	if p.current != m {
		m.back <- nil
	}
}
