package socket

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flake-go/flake/node/reserve"
)

// poller reads all busy connections, if there are several, in one goroutine: its
// runner. A connection in whose step the runner blocks keeps that goroutine until the
// step is over; the others get another.
type poller struct {
	mu      sync.Mutex
	epoll   int
	members map[int32]*member // by descriptor; nil: nobody polls
	runner  int               // how many there have been
	at      *member           // whose step the last of them calls
	steps   uint64            // begun
	seen    uint64            // steps at the last look
	watch   *time.Timer       // calls look
}

var busyOnes poller

// member is a connection among those.
type member struct {
	held *held // counts what it has sent since the last sweep
	fd   int32
	step func() error
	back chan error // receives once, when the poller has done with it

	gone  bool // it is no member any more, because
	quiet bool // nothing came, or
	out   bool // the others waited for it; or it ends, or no others are busy
}

// join fails if there is no descriptor for a poller.
func (p *poller) join(m *member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members == nil && !p.open() {
		return false
	}
	if unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, int(m.fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: m.fd}) != nil {
		return false
	}
	m.held.octets = 1 // not quiet yet
	p.members[m.fd] = m
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
	p.epoll, p.members = fd, make(map[int32]*member)
	p.start()
	if p.watch == nil {
		p.watch = time.AfterFunc(idle, p.look)
	}
	p.watch.Reset(idle)
	return true
}

func (p *poller) start() {
	p.runner++
	p.at = nil
	go p.run(p.runner, p.epoll)
}

// run calls the step of each member that has something to read. A member of the last
// batch may have left meanwhile, and its descriptor be another's: who has nothing to
// read does not mind.
func (p *poller) run(runner, epoll int) {
	runtime.LockOSThread() // else it costs a quarter more
	defer runtime.UnlockOSThread()
	var events [MaxThreads]unix.EpollEvent
	swept, yielded := time.Now(), time.Now()
	worked := cpuTime()
	for {
		n, _ := unix.EpollWait(epoll, events[:], int(idle/time.Millisecond))
		for _, e := range events[:max(n, 0)] {
			if m := p.begin(e.Fd); m != nil && !p.end(runner, m, m.step()) {
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
			if !p.sweep(worked-before > passed*9/10) {
				return
			}
		}
	}
}

// cpuTime returns what the calling thread has used of a processor.
func cpuTime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// reading returns how many threads read.
func (p *poller) reading() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return threads.Load() - int32(len(p.members)) + 1
}

func (p *poller) begin(fd int32) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[fd]
	if m != nil {
		p.at = m
		p.steps++
	}
	return m
}

// end reports whether the runner goes on: another may have taken its place.
func (p *poller) end(runner int, m *member, err error) bool {
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
	p.at = nil
	return true
}

// sweep drops members that are quiet, or alone. If the runner always works, it drops
// the one that sends most: its own thread is another processor's. Without any members
// sweep ends the poller.
func (p *poller) sweep(always bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var most *member
	sent := 0
	for _, m := range p.members {
		n := m.held.octets
		m.held.octets = 0
		m.quiet = n == 0
		if m.quiet || threads.Load() == 1 {
			p.drop(m)
		} else if n > sent {
			most, sent = m, n
		}
	}
	if always && len(p.members) > 1 {
		most.out = true
		p.drop(most)
	}
	if len(p.members) > 0 {
		return true
	}
	unix.Close(p.epoll)
	p.members = nil
	p.runner++
	return false
}

// look has another runner take over if one step takes long.
func (p *poller) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members == nil {
		return
	}
	if p.at != nil && p.steps == p.seen {
		p.replace()
	}
	p.seen = p.steps
	p.watch.Reset(idle)
}

// hold tells the poller that m's step, if it runs, has to wait.
func (p *poller) hold(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == m {
		p.replace()
	}
}

func (p *poller) replace() {
	p.at.out = true
	p.drop(p.at)
	p.start()
}

// leave ends m's part.
func (p *poller) leave(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(m)
}

// drop gives m back: at once, or when its step is over.
func (p *poller) drop(m *member) {
	if m.gone {
		return
	}
	m.gone = true
	delete(p.members, m.fd)
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, int(m.fd), nil)
	if p.at != m {
		m.back <- nil
	}
}
